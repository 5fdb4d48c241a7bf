"""Networks, texts and training comforts as a user calls them: one's own network, tokens, sampling, preview, rates, averages."""
import json, os, pathlib, struct, subprocess, sys, tempfile, unittest, zlib

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
LAYERS = os.path.join(SOURCE, "recipes/models/layers-digits.toml")
DEMO = os.path.join(SOURCE, "recipes/demo.toml")
QUICK = ["--set", "data.limit=300", "--set", "data.limit_test=100"]


def run(*words, cwd=SOURCE, ok=True):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)
    if ok:
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stderr}"
    return done


def result(*words):
    return json.loads(run(*words, "--json").stdout.strip().splitlines()[-1])


class Networks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        pathlib.Path(self.path(name)).write_text(text)
        return self.path(name)

    def test_models_show_describes_ones_own_network_at_its_own_batch(self):
        text = run("models", "show", LAYERS).stdout
        shown = result("models", "show", LAYERS)
        slice = shown["global_batch"] // shown["shards"]
        self.assertEqual(shown["batch"], slice)
        self.assertEqual(shown["layers"][0]["output"][0], slice)
        self.assertIn(f"[{slice}, ", text)
        self.assertGreater(shown["weights"], 0)
        larger = result("models", "show", LAYERS, "--set", f"train.batch={2 * shown['global_batch']}")
        self.assertEqual(larger["global_batch"], 2 * shown["global_batch"])
        refused = run("models", "show", LAYERS, "--set", "model.layers=[{type='conv3d'}]", ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("conv2d", refused.stderr)
        self.assertEqual(run("models", "show", "resnet81", ok=False).returncode, 2)

    def test_a_preview_shows_pictures_of_every_class(self):
        def picture(path, tone):
            raw = b"".join(b"\0" + bytes([tone] * 8) for _ in range(8))
            part = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
            pathlib.Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
                                           + part(b"IDAT", zlib.compress(raw)) + part(b"IEND", b""))
        seen = []
        for folder, tones in (("one", ((10, 10), (200, 200))), ("two", ((10, 10), (90, 200)))):
            for name, pair in zip(("a", "b"), tones):
                os.makedirs(self.path(f"{folder}/{name}"))
                for i in range(12):
                    picture(self.path(f"{folder}/{name}/{i:02}.png"), pair[i % 2])
            recipe = self.write(folder + ".toml", f'[model]\nname = "mlp"\n[data]\nkind = "images"\npath = "{self.path(folder)}"\nchannels = 1\n'
                                '[train]\nepochs = 1\n')
            run("data", "show", recipe, "--png", self.path(folder + ".png"), "--samples", "10", "--epochs", "1")
            seen.append(pathlib.Path(self.path(folder + ".png")).read_bytes())
        self.assertNotEqual(*seen)

    def test_a_text_of_byte_pairs_is_saved_trained_on_and_sampled(self):
        text = self.write("text.txt", "the quick brown fox jumps over the lazy dog\n" * 200)
        made = result("data", "tokens", text, "--vocabulary", "280", "--to", self.path("t.bpe"))
        self.assertLess(made["tokens"], made["bytes"] / 2)
        self.assertEqual(run("data", "tokens", text, "--to", self.path("t.bpe"), ok=False).returncode, 2)
        recipe = self.write("gpt.toml", f'[model]\nname = "gpt"\nwidth = 16\nheads = 2\nlayers = 1\n[data]\nkind = "text"\n'
                            f'path = "{text}"\nlevel = "bpe"\ntokens = "{self.path("t.bpe")}"\nlength = 12\n[optim]\nname = "adamw"\n'
                            'lr = 0.01\n[train]\nsteps = 60\nbatch = 16\n')
        run("train", recipe, "--run", self.path("run"), "--json")
        told = ["sample", self.path("run"), "--prompt", "the ", "--prompt", "fox", "--length", "30"]
        with_cache, without = result(*told), result(*told, "--no-cache")
        self.assertEqual([t["text"] for t in with_cache], [t["text"] for t in without])
        self.assertEqual([t["cache"] for t in with_cache + without], [True, True, False, False])
        stopped = result("sample", self.path("run"), "--prompt", "the quick", "--temperature", "0", "--stop", "dog", "--length", "300")
        self.assertTrue(stopped["stopped"], stopped)
        self.assertNotIn("dog", stopped["text"])
        narrow = [result("sample", self.path("run"), "--seed", str(s), "--top-k", "1", "--length", "20")["text"] for s in (1, 2)]
        self.assertEqual(*narrow)
        self.assertEqual(narrow[0], result("sample", self.path("run"), "--top-p", "0", "--length", "20")["text"])
        printed = run("sample", self.path("run"), "--prompt", "the ", "--length", "20").stdout
        self.assertEqual(printed, "the " + result("sample", self.path("run"), "--prompt", "the ", "--length", "20")["text"] + "\n")
        wrong = run("check", recipe, "--set", "data.level=word", ok=False)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn('level = "bpe"', wrong.stdout + wrong.stderr)

    def test_augmentation_can_be_looked_at(self):
        picture = self.path("seen.png")
        words = ["data", "show", DEMO, "--png", picture, "--samples", "6", "--epochs", "2", "--set",
                 "data.transform=[{kind='rotate'}, {kind='zoom'}, {kind='colour'}, {kind='erase'}, {kind='mixup'}]"]
        self.assertEqual(result(*words)["rows"], 3)
        first = pathlib.Path(picture).read_bytes()
        self.assertEqual(first[:8], b"\x89PNG\r\n\x1a\n")
        run(*words)
        self.assertEqual(pathlib.Path(picture).read_bytes(), first)
        run(*words, "--set", "train.seed=9")
        self.assertNotEqual(pathlib.Path(picture).read_bytes(), first)
        wrong = run("data", "show", DEMO, "--png", self.path("no.png"), "--set", "data.transform=[{kind='rotat'}]", ok=False)
        self.assertEqual((wrong.returncode, os.path.exists(self.path("no.png"))), (2, False))
        self.assertIn("rotate", wrong.stderr)

    def test_find_lr_suggests_a_rate_and_saves_nothing_else(self):
        done = run("train", DEMO, *QUICK, "--find-lr", "--json", cwd=self.folder.name)
        found = json.loads(done.stdout.strip().splitlines()[-1])
        self.assertEqual(os.listdir(self.folder.name), ["demo-find-lr.svg"])
        self.assertIn("<svg", pathlib.Path(self.path("demo-find-lr.svg")).read_text())
        self.assertTrue(1e-5 < found["suggested_lr"] < 10, found["suggested_lr"])
        self.assertEqual(len(found["rates"]), len(found["losses"]))
        text = run("train", DEMO, *QUICK, "--find-lr", "--svg", self.path("c.svg"), cwd=self.folder.name).stdout
        self.assertIn("suggested: optim.lr = ", text)

    def test_an_average_of_the_weights_is_kept_and_used_when_asked(self):
        run("train", DEMO, *QUICK, "--set", "train.epochs=2", "--set", "optim.ema=0.9", "--run", self.path("run"), "--json")
        plain, average = result("eval", self.path("run")), result("eval", self.path("run"), "--ema")
        self.assertNotEqual(plain["loss"], average["loss"])
        run("train", DEMO, *QUICK, "--set", "train.epochs=1", "--run", self.path("none"), "--json")
        refused = run("eval", self.path("none"), "--ema", ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("optim.ema", refused.stderr)
        system = run("check", DEMO, "--system", "easgd", "--set", "optim.ema=0.9", ok=False)
        self.assertEqual(system.returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
