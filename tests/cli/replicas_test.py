"""Workers that check each other: a bit that changes by itself is found, the steps are done again, and who was wrong is named."""
import json, os, pathlib, subprocess, sys, tempfile, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SHORT = ["--set", "data.limit=400", "--set", "data.limit_test=50", "--set", "train.batch=32", "--set", "train.shards=4", "--set", "train.epochs=4", "--cores", "1"]


class Replicas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.clean = cls.train("clean")[0]["weights_sha256"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def train(cls, name, *more, code=0):
        run = os.path.join(cls.folder.name, name)
        done = subprocess.run([PROGRAM, "train", os.path.join(SOURCE, "recipes/demo.toml"), *SHORT, "--run", run, "--json", *more], capture_output=True, text=True, cwd=SOURCE)
        assert done.returncode == code, f"{done.returncode}: {done.stderr}"
        return (json.loads(done.stdout.splitlines()[-1]) if code == 0 else None), done.stderr, pathlib.Path(run)

    def wrong(self, run):
        return [(j["rank"], j["times"]) for j in map(json.loads, pathlib.Path(run, "journal.jsonl").read_text().splitlines()) if j["action"] == "wrong"]

    def test_without_errors_nothing_happens(self):
        result, err, run = self.train("quiet", "--workers", "3", "--check-replicas", "5")
        self.assertEqual((result["weights_sha256"], result["generations"]), (self.clean, 1), err)
        self.assertFalse(os.path.exists(run / "journal.jsonl"))

    def test_a_flipped_bit_is_found_wherever_it_was_and_the_steps_are_done_again(self):
        for number, (workers, flip, rank) in enumerate([(3, "rank=1,step=7", 1), (2, "rank=0,step=13", 0), (3, "rank=2,step=10,of=gradient", 2), (2, "rank=1,step=10,of=gradient", 1),
                                                        (3, "rank=0,step=9", 0), (3, "rank=2,step=10", 2)]):
            with self.subTest(workers=workers, flip=flip):
                result, err, run = self.train(f"flip{number}", "--workers", str(workers), "--check-replicas", "5", "--flip-bit", flip)
                self.assertEqual((result["weights_sha256"], result["generations"], result["workers"]), (self.clean, 2, workers), err)
                self.assertEqual(self.wrong(run), [(rank, 1)], err)
                steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines() if "train_loss" in line]
                self.assertEqual(steps, sorted(set(steps)), "every step stands once")

    def test_whoever_is_wrong_twice_is_left_out(self):
        result, err, run = self.train("twice", "--workers", "3", "--check-replicas", "4", "--flip-bit", "rank=1,step=6", "--flip-bit", "rank=1,step=17")
        self.assertEqual((result["weights_sha256"], result["workers"]), (self.clean, 2), err)
        self.assertEqual(self.wrong(run), [(1, 1), (1, 2)], err)
        self.assertIn("left out", err)

    def test_a_gradient_that_is_no_number_is_refused_on_all_alike(self):
        _, err, run = self.train("nan", "--workers", "3", "--check-replicas", "5", "--flip-bit", "rank=1,step=8,of=nan", code=2)
        self.assertIn("rank 1: step 7: the loss is a number, but the gradient of parameter", err)
        self.assertFalse(list((run / "checkpoints").glob("step-*")) if (run / "checkpoints").exists() else [])

    def test_what_cannot_be_compared_is_refused(self):
        for more, text in ((["--workers", "1"], "--workers 2 or more"), (["--workers", "2", "--system", "easgd"], "exact training"), (["--workers", "2", "--plan", "zero=3"], "exact training"),
                           (["--workers", "2", "--flip-bit", "rank=7,step=3"], "no rank 7"), (["--workers", "2", "--flip-bit", "rank=1"], "step is missing")):
            _, err, run = self.train("refused", "--check-replicas", "5", *more, code=2)
            self.assertIn(text, err)
            self.assertFalse(run.exists())
        self.assertIn("--check-replicas", self.train("refused", "--flip-bit", "rank=1,step=3", code=2)[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
