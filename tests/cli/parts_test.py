"""Train, validation and test part, metrics and losses by name, and k-fold, as a user calls them."""
import json, os, pathlib, random, statistics, subprocess, sys, tempfile, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

FLOWERS = """[model]
name = "mlp"
hidden = [16]
[data]
kind = "csv"
path = "flowers.csv"
validation = 0.2
test = 0.2
[metrics]
report = ["accuracy", "f1", "auc", "f1_per_class"]
[loss]
class_weights = "balanced"
[optim]
name = "adam"
lr = 0.01
[train]
epochs = 5
batch = 16
monitor = "val_f1"
"""


def run(*words, cwd, ok=True):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)
    if ok:
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stderr}"
    return done


def last_json(done):
    return json.loads(done.stdout.strip().splitlines()[-1])


def points(run_dir):
    return [json.loads(line) for line in pathlib.Path(run_dir, "metrics.jsonl").read_text().splitlines()]


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = cls.holder.name
        rng = random.Random(4)
        rows = ["a,b,kind"]
        for i in range(200):
            kind = ["red", "red", "red", "blue", "green"][i % 5]
            centre = {"red": (0, 0), "blue": (1.5, 0), "green": (0, 1.5)}[kind]
            rows.append(f"{rng.gauss(centre[0], 1):.4f},{rng.gauss(centre[1], 1):.4f},{kind}")
        pathlib.Path(cls.folder, "flowers.csv").write_text("\n".join(rows) + "\n")
        pathlib.Path(cls.folder, "flowers.toml").write_text(FLOWERS)
        cls.result = last_json(run("train", "flowers.toml", "--run", "runs/one", "--json", cwd=cls.folder))

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def test_validation_while_it_trains_and_the_test_once(self):
        lines = points(os.path.join(self.folder, "runs/one"))
        validated = [p for p in lines if "val_loss" in p]
        tested = [p for p in lines if "test_loss" in p]
        self.assertEqual(len(validated), 5)
        self.assertEqual(len(tested), 1)
        for p in validated:
            for key in ("val_accuracy", "val_f1", "val_auc", "val_f1[red]"):
                self.assertIn(key, p)
        best = max(validated, key=lambda p: (p["val_f1"], -p["val_loss"]))
        self.assertEqual(self.result["best_step"], best["step"])
        self.assertEqual(self.result["best"], best["val_f1"])
        self.assertEqual(self.result["monitor"], "val_f1")
        self.assertEqual(self.result["tested_step"], best["step"])
        self.assertEqual(tested[0]["tested_step"], best["step"])

    def test_eval_and_predict_use_the_best_and_say_so(self):
        out = json.loads(run("eval", "runs/one", "--json", cwd=self.folder).stdout)
        self.assertEqual(out["step"], self.result["best_step"])
        self.assertIn("best val_f1, and of equals the lowest loss", out["checkpoint"])
        for key in ("loss", "accuracy", "f1", "auc", "f1[blue]"):
            self.assertEqual(out[key], self.result["test_" + key], key)
        text = run("eval", "runs/one", "--split", "validation", "--checkpoint", "last", cwd=self.folder).stdout
        self.assertIn("40 validation samples", text)
        self.assertIn("the last", text)
        shown = run("runs", "show", "runs/one", cwd=self.folder).stdout
        self.assertIn("val_f1", shown)
        self.assertIn("best val_f1, and of equals the lowest loss", shown)
        said = run("predict", "runs/one", "0.1,0.2", cwd=self.folder)
        self.assertIn("best val_f1, and of equals the lowest loss", said.stdout + said.stderr)

    def test_any_number_of_workers_gives_the_same_digits(self):
        for words in (["--workers", "2"], ["--workers", "3", "--world", "threads"], ["--workers", "2", "--world", "sim"]):
            other = last_json(run("train", "flowers.toml", *words, "--run", "runs/" + "".join(words).strip("-"), "--json",
                                  cwd=self.folder))
            for key in self.result:
                if key.startswith(("val_", "test_", "best")):
                    self.assertEqual(other[key], self.result[key], (words, key))

    def test_folds_have_mean_and_deviation(self):
        done = run("train", "flowers.toml", "--set", "data.folds=3", "--run", "runs/folds", cwd=self.folder, ok=False)
        self.assertEqual(done.returncode, 2, "a fold is the validation part")
        self.assertIn("keep one of them", done.stderr)
        # The flag says it clearly enough: it takes the place of data.validation.
        out = last_json(run("train", "flowers.toml", "--folds", "2", "--set", "train.epochs=1", "--run", "runs/instead", "--json",
                            cwd=self.folder))
        self.assertEqual(out["folds"], 2)
        recipe = FLOWERS.replace("validation = 0.2\n", "")
        pathlib.Path(self.folder, "folded.toml").write_text(recipe)
        out = last_json(run("train", "folded.toml", "--folds", "3", "--set", "train.epochs=2", "--run", "runs/folds", "--json",
                            cwd=self.folder))
        self.assertEqual(out["folds"], 3)
        for fold in (1, 2, 3):
            summary = json.loads(pathlib.Path(self.folder, f"runs/folds/fold-{fold}/summary.json").read_text())
            self.assertEqual(out["metrics"]["val_f1"]["folds"][fold - 1], summary["val_f1"])
        values = out["metrics"]["val_f1"]["folds"]
        self.assertAlmostEqual(out["metrics"]["val_f1"]["mean"], statistics.mean(values))
        self.assertAlmostEqual(out["metrics"]["val_f1"]["deviation"], statistics.stdev(values))
        # The recipe may say it too.
        pathlib.Path(self.folder, "asks.toml").write_text(recipe.replace("test = 0.2\n", "test = 0.2\nfolds = 3\n"))
        text = run("train", "asks.toml", "--set", "train.epochs=1", "--run", "runs/asks", cwd=self.folder).stdout
        self.assertIn("deviation", text)
        one = last_json(run("train", "asks.toml", "--set", "train.epochs=1", "--set", "data.fold=2", "--run", "runs/two", "--json",
                            cwd=self.folder))
        self.assertIn("val_f1", one)

    def test_numbers_labels_and_quantiles(self):
        rng = random.Random(5)
        rows = ["a,b,y"]
        for _ in range(200):
            a, b = rng.gauss(0, 1), rng.gauss(0, 1)
            rows.append(f"{a:.4f},{b:.4f},{2 * a - b + 0.3 * rng.gauss(0, 1):.4f}")
        pathlib.Path(self.folder, "numbers.csv").write_text("\n".join(rows) + "\n")
        base = FLOWERS.replace("flowers.csv", "numbers.csv").replace('monitor = "val_f1"\n', "")
        base = base[:base.index("[metrics]")] + base[base.index("[optim]"):].replace("epochs = 5", "epochs = 30")
        for i, loss in enumerate(['name = "mse"', 'name = "mae"', 'name = "huber"\ndelta = 0.5',
                                  'name = "quantile"\nquantiles = [0.1, 0.5, 0.9]']):
            pathlib.Path(self.folder, "numbers.toml").write_text(base + f'monitor = "val_rmse"\n[loss]\n{loss}\n')
            out = last_json(run("train", "numbers.toml", "--run", f"runs/numbers{i}", "--json", cwd=self.folder))
            self.assertGreater(out["test_r2"], 0.8, loss)
            self.assertLess(out["test_mae"], 1.0, loss)
            self.assertLessEqual(out["test_mae"], out["test_rmse"])

    def test_bad_input_names_every_problem_and_leaves_nothing(self):
        bad = FLOWERS.replace('report = ["accuracy", "f1"', 'report = ["acuracy", "rmse"').replace("val_f1", "val_f2")
        bad = bad.replace('class_weights = "balanced"', 'class_weights = [1, 2]\nfocal_gama = 2')
        pathlib.Path(self.folder, "bad.toml").write_text(bad)
        done = run("train", "bad.toml", "--run", "runs/bad", cwd=self.folder, ok=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("has 2 numbers, but there are 3 classes", done.stderr)
        self.assertIn("focal_gamma", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "runs/bad")))
        fine = FLOWERS.replace('report = ["accuracy", "f1"', 'report = ["acuracy", "rmse"').replace("val_f1", "val_f2")
        pathlib.Path(self.folder, "bad.toml").write_text(fine)
        done = run("check", "bad.toml", cwd=self.folder, ok=False)
        self.assertEqual(done.returncode, 2)
        for words in ("did you mean 'accuracy'", "'rmse', which has no meaning", "did you mean 'f1'"):
            self.assertIn(words, done.stderr)

    def test_the_speed_of_a_line_is_that_since_the_line_before(self):
        lines = [p["samples_per_s"] for p in points(os.path.join(self.folder, "runs/one")) if "samples_per_s" in p]
        self.assertGreater(len(lines), 10)
        self.assertGreater(len(set(lines)), len(lines) // 2, "stale values are repeated")


if __name__ == "__main__":
    unittest.main(argv=["parts", *sys.argv[3:]])
