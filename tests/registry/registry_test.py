"""The registry's verbs as a user calls them: find, tag, trash, versions, differences, archive, export."""
import json, os, pathlib, subprocess, sys, tempfile, unittest

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

    def test_export_is_one_file_without_script(self):
        path = os.path.join(self.folder.name, "demo-1.html")
        self.run_verb("runs", "export", "demo-1", "--html", path)
        text = pathlib.Path(path).read_text()
        self.assertIn("<svg", text)
        self.assertIn("Confusion matrix", text)
        self.assertNotIn("<script", text)
        self.assertNotIn("src=", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
