"""Every verb as a user calls it: help with examples, --json, and one clear message with exit code 2 for bad input."""
import json, os, pathlib, subprocess, sys, tempfile, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECIPE = os.path.join(SOURCE, "recipes/demo.toml")
QUICK = ["--set", "data.limit=300", "--set", "data.limit_test=100", "--set", "train.epochs=2"]


def run(*words, cwd=SOURCE, ok=True):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)
    if ok:
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stderr}"
    return done


def files(folder):
    return sorted(os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs)


class Verbs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.run_dir = os.path.join(cls.folder.name, "run")
        out = run("train", RECIPE, *QUICK, "--run", cls.run_dir, "--trace", "--json").stdout
        cls.result = json.loads(out.strip().splitlines()[-1])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_verb_has_help_with_examples(self):
        verbs = json.loads(run("completion", "--json").stdout)
        self.assertIn("train", verbs)
        for path in verbs:
            if path:
                text = run(*path.split(), "--help").stdout
                self.assertIn("Example", text, path)
                if not any(other.startswith(path + " ") for other in verbs):
                    self.assertIn("--json", text, path)

    def test_bash_completes_verbs_flags_and_names(self):
        def completed(*words):
            script = f"""source <({PROGRAM} completion); COMP_WORDS=({' '.join(f"'{w}'" for w in words)})
                COMP_CWORD={len(words) - 1}; _echelon; echo "${{COMPREPLY[@]}}\""""
            return subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=SOURCE).stdout.split()
        self.assertEqual(completed("echelon", "tr"), ["train"])
        self.assertEqual(completed("echelon", "runs", "")[:3], ["list", "show", "compare"])
        self.assertEqual(completed("echelon", "runs", "fi"), ["find"])
        self.assertEqual(completed("echelon", "train", "recipes/demo.toml", "--resu"), ["--resume"])
        self.assertEqual(completed("echelon", "train", "recipes/de"), ["recipes/demo.toml"])
        self.assertEqual(completed("echelon", "data", "get", "fa"), ["fashion-mnist"])
        self.assertEqual(completed("echelon", "models", "show", "resnet1"), ["resnet18"])
        self.assertEqual(completed("echelon", "systems", "show", "easg"), ["easgd"])

    def test_train_json_ends_with_the_result(self):
        for key in ("steps", "epochs", "train_loss", "test_accuracy", "samples_per_s", "weights_sha256", "run_dir", "stopped_by"):
            self.assertIn(key, self.result)
        self.assertEqual(self.result["steps"], 10)
        self.assertEqual(len(self.result["weights_sha256"]), 64)

    def test_a_run_folder_has_everything(self):
        for name in ("recipe.toml", "metrics.jsonl", "summary.json", "trace.json", "checkpoints/step-10/manifest.json",
                     "checkpoints/step-10/model.safetensors"):
            self.assertTrue(os.path.exists(os.path.join(self.run_dir, name)), name)
        self.assertTrue(os.listdir(os.path.join(self.run_dir, "tb")))
        log = pathlib.Path(self.run_dir, "logs/rank_0.log").read_text()
        for words in ("start  echelon train", "lenet5: 61.7 k parameters", "test   epoch 2.00", "step-10  weights sha256",
                      'end    {"steps":10'):
            self.assertIn(words, log)
        trace = json.loads(pathlib.Path(self.run_dir, "trace.json").read_text())
        names = {e.get("name") for e in trace["traceEvents"]}
        self.assertTrue({"step", "evaluate"} <= names and any("conv2d" in str(n) for n in names), names)

    def test_the_saved_recipe_and_any_number_of_cores_give_the_same_bits(self):
        again = run("train", os.path.join(self.run_dir, "recipe.toml"), "--cores", "1", "--json", "--run",
                    os.path.join(self.folder.name, "again")).stdout
        self.assertEqual(json.loads(again.strip().splitlines()[-1])["weights_sha256"], self.result["weights_sha256"])

    def test_eval_agrees_with_training(self):
        out = json.loads(run("eval", self.run_dir, "--checkpoint", "last", "--json").stdout)
        self.assertAlmostEqual(out["accuracy"], self.result["test_accuracy"])
        self.assertEqual(out["weights_sha256"], self.result["weights_sha256"])

    def test_runs_list_show_compare(self):
        root = self.folder.name
        self.assertTrue(any(r["run_dir"].endswith("run") for r in json.loads(run("runs", "list", "--root", root, "--json").stdout)))
        svg = os.path.join(root, "curve.svg")
        self.assertIn("train_loss", run("runs", "show", self.run_dir, "--svg", svg).stdout)
        self.assertIn("<svg", pathlib.Path(svg).read_text())
        self.assertIn("the same bits", run("runs", "compare", self.run_dir, self.run_dir).stdout)

    def test_predict_reads_a_picture(self):
        image = os.path.join(self.folder.name, "images")
        run("data", "convert", "digits", "--format", "images", "--to", image)
        folder = os.path.join(image, "test", sorted(os.listdir(os.path.join(image, "test")))[0])
        out = json.loads(run("predict", self.run_dir, os.path.join(folder, sorted(os.listdir(folder))[0]), "--json").stdout)
        self.assertTrue(0 < out["confidence"] <= 1 and 0 <= out["label"] < 10, out)

    def test_models_data_check_init(self):
        self.assertIn("61706", run("models", "show", "lenet5", "--batch", "8", "--json").stdout)
        self.assertTrue(any(d["name"] == "digits" and d["here"] for d in json.loads(run("data", "list", "--json").stdout)))
        self.assertTrue(json.loads(run("check", RECIPE, "--json").stdout)["ok"])
        recipe = os.path.join(self.folder.name, "first.toml")
        run("init", "digits", "-o", recipe)
        run("check", recipe)

    def test_a_language_model_speaks(self):
        text = os.path.join(self.folder.name, "text.txt")
        pathlib.Path(text).write_text("the quick brown fox jumps over the lazy dog\n" * 200)
        recipe = os.path.join(self.folder.name, "gpt.toml")
        pathlib.Path(recipe).write_text(f'[model]\nname = "gpt"\nwidth = 16\nheads = 2\nlayers = 1\n[data]\nkind = "text"\npath = "{text}"\n'
                                'length = 16\n[optim]\nname = "adamw"\nlr = 0.01\n[train]\nsteps = 60\nbatch = 16\n')
        folder = os.path.join(self.folder.name, "gpt")
        run("train", recipe, "--run", folder, "--json")
        out = json.loads(run("sample", folder, "--prompt", "the ", "--length", "20", "--json").stdout)
        self.assertEqual(len(out["text"]), 20)
        same = json.loads(run("sample", folder, "--prompt", "the ", "--length", "20", "--json").stdout)
        self.assertEqual(out, same)
        kept = os.path.join(folder, "texts.jsonl")
        self.assertFalse(os.path.exists(kept), "kept without being asked")
        for _ in range(11):
            run("sample", folder, "--prompt", "the ", "--prompt", "fox ", "--length", "2", "--keep")
        lines = [json.loads(line) for line in pathlib.Path(kept).read_text().splitlines()]
        self.assertEqual([line["prompt"] for line in lines], ["the ", "fox "] * 10)
        self.assertEqual(lines[0]["text"], out["text"][:2])

    def test_pictures_are_drawn_where_it_is_said(self):
        recipe = os.path.join(SOURCE, "recipes/models/autoencoder-mnist.toml")
        folder = os.path.join(self.folder.name, "painter")
        run("train", recipe, "--run", folder, "--set", "data.kind=digits", "--set", "train.steps=1", "--json")
        run("sample", folder, cwd=self.folder.name)
        drawn, kept = os.path.join(self.folder.name, "samples.png"), os.path.join(folder, "samples.png")
        self.assertTrue(pathlib.Path(drawn).read_bytes().startswith(b"\x89PNG"))
        self.assertFalse(os.path.exists(kept), "kept without being asked")
        run("sample", folder, "--keep", cwd=self.folder.name)
        self.assertEqual(pathlib.Path(kept).read_bytes(), pathlib.Path(drawn).read_bytes())

    def refused(self, *words, says):
        with tempfile.TemporaryDirectory() as empty:
            done = run(*words, cwd=empty, ok=False)
            self.assertEqual(done.returncode, 2, f"{words}: {done.stderr}")
            self.assertEqual(files(empty), [], "something was written")
        for part in says:
            self.assertIn(part, done.stderr + done.stdout, words)

    def test_bad_input_is_one_message_and_exit_code_2(self):
        bad = os.path.join(self.folder.name, "bad.toml")
        pathlib.Path(bad).write_text('[model]\nname = "lenet6"\n[data]\nkind = "digits"\n[optim]\nlernrate = 0.1\n[train]\nepochs = "five"\nbatch = 10\nshards = 3\n')
        self.refused("train", bad, says=["bad.toml:2:", "lenet5", "bad.toml:6:", "lernrate", "bad.toml:8:", "bad.toml:9:", "shards"])
        self.refused("train", "missing.toml", says=["missing.toml"])
        self.refused("train", RECIPE, "--set", "optim.lrr=1", says=["optim.lrr", "lr"])
        self.refused("train", RECIPE, "--cores", "0", says=["cores"])
        self.refused("train", RECIPE, "--run", "nowhere", "--resume", says=["nowhere"])
        self.refused("eval", "nowhere", says=["nowhere"])
        self.refused("models", "show", "resnet17", says=["resnet17", "resnet18"])
        self.refused("data", "get", "mnits", says=["mnits", "mnist"])
        self.refused("frobnicate", says=["frobnicate"])
        self.refused("sample", self.run_dir, "--top-k", "-3", "--top-p", "1.5", "--length", "many", "--temperatur", "1",
                     says=["--top-k: takes a number from 0 on, not '-3'", "--top-p: takes a number from 0 to 1", "--length: takes a whole number",
                           "no flag --temperatur", "'--temperature'"])
        self.refused("eval", self.run_dir, "--split", "tset", says=["--split: takes one of test, validation, train, not 'tset'; did you mean 'test'?"])
        self.refused("train", RECIPE.replace("demo.toml", "deno.toml"), says=["there is no such recipe; did you mean", "demo.toml'?"])
        self.refused("train", says=["`echelon train`: recipe is required"])
        self.refused("predict", self.run_dir, "1,2,x", says=["1,2,x"])

    def test_a_damaged_checkpoint_is_named_and_not_used(self):
        model = os.path.join(self.folder.name, "again2", "checkpoints", "step-10", "model.safetensors")
        run("train", RECIPE, *QUICK, "--run", os.path.join(self.folder.name, "again2"), "--json")
        data = bytearray(pathlib.Path(model).read_bytes())
        data[len(data) // 2] ^= 1
        pathlib.Path(model).write_bytes(data)
        done = run("eval", os.path.join(self.folder.name, "again2"), "--checkpoint", "10", ok=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("model.safetensors", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=["verbs", *sys.argv[3:]])
