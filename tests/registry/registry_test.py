"""The registry's verbs as a user calls them: find, tag, trash, versions, differences, archive, export."""
import json, os, pathlib, shutil, subprocess, sys, tempfile, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECIPE = os.path.join(SOURCE, "recipes/demo.toml")


class Verbs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for link in ("share", "recipes"):
            os.symlink(os.path.join(SOURCE, link), os.path.join(cls.folder.name, link))
        quick = ["--set", "data.limit=400", "--set", "data.limit_test=50", "--set", "train.epochs=1"]
        cls.one = cls.result("train", RECIPE, *quick, "--set", "train.keep=30", "--set", "train.checkpoint_every_steps=2")
        cls.two = cls.result("train", RECIPE, *quick, "--set", "optim.lr=0.5", "--set", "train.seed=2")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def run_verb(cls, *words, ok=True):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=cls.folder.name, stdin=subprocess.DEVNULL)
        if ok:
            assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    @classmethod
    def result(cls, *words):
        return json.loads(cls.run_verb(*words, "--json").stdout.strip().splitlines()[-1])

    def names(self, question):
        return [r["name"] for r in self.result("runs", "find", question)]

    def test_train_puts_runs_into_the_registry_and_find_asks_it(self):
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "runs/registry.db")))
        self.assertEqual(self.names("optim.lr < 0.1"), ["demo-1"])
        self.assertEqual(self.names("optim.lr < 10 order by optim.lr desc"), ["demo-2", "demo-1"])
        self.assertEqual(self.names("train_loss and state = end limit 1"), ["demo-1"])
        self.assertIn("optim.lr", self.run_verb("runs", "find", "optim.lr > 0.1").stdout)
        wrong = self.run_verb("runs", "find", "optim.lrr > 1", ok=False)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean 'optim.lr'?", wrong.stderr)
        self.assertIn("optim.lr", self.result("runs", "find", "--keys"))

    def test_a_registry_rebuilt_from_the_folders_answers_the_same(self):
        self.result("runs", "tag", "demo-1", "kept")
        before = self.result("runs", "find", "")
        for end in ("", "-wal", "-shm"):
            path = os.path.join(self.folder.name, "runs/registry.db" + end)
            if os.path.exists(path):
                os.remove(path)
        self.assertEqual(self.result("runs", "index")["runs"], 2)
        self.assertEqual(self.result("runs", "find", ""), before)

    def test_many_processes_tag_at_once_and_no_tag_is_lost(self):
        many = [subprocess.Popen([PROGRAM, "runs", "tag", "demo-2", f"t{i}"], cwd=self.folder.name, stdout=subprocess.DEVNULL) for i in range(8)]
        self.assertEqual([p.wait() for p in many], [0] * 8)
        self.assertEqual(self.names(" and ".join(f"tag = t{i}" for i in range(8))), ["demo-2"])

    def test_trash_and_back(self):
        self.run_verb("runs", "note", "demo-2", "away")
        self.run_verb("runs", "star", "demo-2")
        self.assertEqual(self.names("star"), ["demo-2"])
        self.assertRegex(self.run_verb("runs", "find", "star and note ~ away").stdout, r"\* demo-2 +\* +away")
        self.run_verb("runs", "trash", "demo-2")
        self.assertEqual(self.names(""), ["demo-1"])
        self.assertEqual(self.result("runs", "trash", "--list"), ["demo-2"])
        self.run_verb("runs", "restore", "demo-2")
        self.assertEqual(self.names("note ~ AWAY"), ["demo-2"])

    def test_versions_stages_and_lineage(self):
        self.assertEqual(self.result("models", "register", "demo-1", "--name", "digits")["version"], 1)
        self.assertEqual(self.result("models", "register", "demo-2", "--name", "digits", "--stage", "staging")["version"], 2)
        self.result("models", "stage", "digits", "1", "production")
        self.assertEqual([(v["version"], v["stage"], v["run"]) for v in self.result("models", "versions", "digits")],
                         [(1, "production", "demo-1"), (2, "staging", "demo-2")])
        self.assertEqual(self.names("stage = production"), ["demo-1"])
        for name, run in (("digits@1", "demo-1"), ("digits@production", "demo-1"), ("digits@staging", "demo-2")):
            best, named = (self.result("export", model, "out.onnx") for model in (f"runs/{run}", name))
            self.assertEqual(named["weights_sha256"], best["weights_sha256"])
        for wrong in (["digits@3"], ["digits@archived"], ["nothing@1"], ["digits@1", "--checkpoint", "last"]):
            said = self.run_verb("export", wrong[0], "out.onnx", *wrong[1:], ok=False)
            self.assertEqual(said.returncode, 2, said.stderr)
            self.assertIn("models versions" if len(wrong) == 1 else "--checkpoint", said.stderr)
        self.assertIn("digits@1", self.run_verb("runs", "find", "registered").stdout)
        refused = self.run_verb("runs", "trash", "demo-1", ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("digits@1", refused.stderr)
        self.assertEqual(self.run_verb("models", "register", "demo-1", "--name", "x@1", ok=False).returncode, 2)
        self.assertEqual(self.run_verb("models", "stage", "digits", "1", "prod", ok=False).returncode, 2)
        self.result("train", RECIPE, "--set", "data.limit=100", "--set", "data.limit_test=50", "--set", "train.epochs=1", "--set", "model.init=runs/demo-1", "--run", "runs/child")
        chain = self.result("runs", "lineage", "child")
        self.assertEqual([link["run"] for link in chain], ["child", "demo-1"])
        self.assertTrue(chain[0]["data_fingerprint"])
        self.run_verb("runs", "trash", "child")

    def test_a_version_is_never_given_twice(self):
        quick = ["--set", "data.limit=100", "--set", "data.limit_test=50", "--set", "train.epochs=1"]
        self.result("train", RECIPE, *quick, "--run", "runs/short")
        register = lambda run: self.result("models", "register", run, "--name", "never")["version"]
        self.assertEqual([register("demo-1"), register("short")], [1, 2])
        self.result("models", "stage", "never", "2", "archived")
        self.run_verb("runs", "trash", "short")
        os.remove(os.path.join(self.folder.name, "runs/model_versions.json"))  # as in a registry that had none
        self.assertEqual(register("demo-2"), 3)
        shutil.rmtree(os.path.join(self.folder.name, "runs/.trash/short"))
        self.assertEqual(register("demo-2"), 4)
        for run in ("demo-1", "demo-2"):
            os.remove(os.path.join(self.folder.name, "runs", run, "labels.json"))
        self.assertEqual(register("demo-1"), 5)
        os.remove(os.path.join(self.folder.name, "runs/demo-1/labels.json"))

    def test_a_damaged_database_is_put_aside_and_built_again(self):
        before = self.result("runs", "find", "")
        path = pathlib.Path(self.folder.name, "runs/registry.db")
        path.write_bytes(b"no database" * 1000)
        self.assertIn("echelon runs index", self.run_verb("runs", "find", "", ok=False).stderr)
        self.assertIn("registry.db.damaged", self.run_verb("runs", "index").stderr)
        self.assertEqual(path.with_name("registry.db.damaged").read_bytes(), b"no database" * 1000)
        self.assertEqual(self.result("runs", "find", ""), before)

    def test_damaged_labels_are_named_for_as_long_as_they_are(self):
        path = pathlib.Path(self.folder.name, "runs/demo-2/labels.json")
        before = path.read_bytes() if path.exists() else None
        for damaged in ("{", '{"tags":["a,b"],"note":"","star":true,"versions":[]}'):
            path.write_text(damaged)
            for verb in (["find", ""], ["find", ""], ["index"]):
                self.assertIn("runs/demo-2/labels.json", self.run_verb("runs", *verb).stderr)
        path.unlink() if before is None else path.write_bytes(before)
        self.assertEqual(self.run_verb("runs", "find", "").stderr, "")

    def test_control_characters_are_refused_in_notes_and_tags(self):
        for text in ("a\x1b[2Jb", "a\x7fb", "a\u009b2Jb"):
            for verb in ("note", "tag"):
                refused = self.run_verb("runs", verb, "demo-1", text, ok=False)
                self.assertEqual(refused.returncode, 2)
                self.assertIn("control characters", refused.stderr)
                self.assertNotIn(text, refused.stderr)
        self.run_verb("runs", "note", "demo-1", "gr\u00fcn,\nand on")
        self.run_verb("runs", "note", "demo-1", "")

    def test_diff_says_what_is_apart(self):
        same = self.result("models", "diff", "demo-1", "demo-1")
        self.assertTrue(same["same_weights"])
        other = self.result("models", "diff", "demo-1", "demo-2")
        self.assertTrue(other["same_architecture"])
        self.assertFalse(other["same_weights"])
        self.assertGreater(other["distance"], 0)
        self.assertIn("optim.lr", other["settings"])

    def test_the_archive_gives_every_checkpoint_back(self):
        run = os.path.join(self.folder.name, "runs/demo-1")
        files = lambda: {p.relative_to(run): p.read_bytes() for p in pathlib.Path(run, "checkpoints").rglob("*") if p.is_file()}
        before = files()
        result = self.result("runs", "archive", "demo-1")
        self.assertEqual(result["snapshots"], len(result["removed"]))
        self.assertEqual(3 * result["snapshots"] + len(files()), len(before))
        self.result("runs", "archive", "demo-1", "--restore", "all")
        self.assertEqual(files(), before)

    def test_every_second_checkpoint_is_trained_again_when_it_is_wanted(self):
        files = lambda: {p.relative_to(run): p.read_bytes() for p in pathlib.Path(run, "checkpoints").rglob("*") if p.is_file()}
        before = {}
        for _ in range(20):  # on a busy machine a save is left out while the one before is being written
            if len(before) == 3 * 8: break
            run = tempfile.mkdtemp(dir=self.folder.name) + "/eight"
            self.run_verb("train", RECIPE, "--run", run, "--set", "data.limit=128", "--set", "data.limit_test=20", "--set", "train.epochs=8",
                          "--set", "train.keep=100")
            before = files()
        result = self.result("runs", "archive", run, "--retrain")
        self.assertEqual(result["retrained"], result["snapshots"] // 2)
        self.assertLess(result["share"], 0.65)
        self.result("runs", "archive", run, "--restore", "all")
        self.assertEqual(files(), before)
        self.assertFalse([p for p in os.listdir(os.path.join(run, "archive")) if not p.endswith(".snapshot")])

    def test_export_is_one_file_without_script(self):
        path = os.path.join(self.folder.name, "demo-1.html")
        self.run_verb("runs", "export", "demo-1", "--html", path)
        text = pathlib.Path(path).read_text()
        self.assertIn("<svg", text)
        self.assertIn("Confusion matrix", text)
        self.assertNotIn("<script", text)
        self.assertNotIn("src=", text)
        self.assertEqual(self.run_verb("runs", "export", "demo-1", "--html", "runs", ok=False).returncode, 2)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "runs.new")))
        self.assertEqual(self.run_verb("export", "demo-1", "z.onnx", "--batch", "0", ok=False).returncode, 2)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "z.onnx")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
