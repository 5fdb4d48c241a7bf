"""Answers of a trained network (`predict`), where it is wrong (`eval --errors`), and runs that begin with its weights."""
import csv, io, json, os, pathlib, shutil, subprocess, sys, tempfile, unittest

import numpy

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECIPE = os.path.join(SOURCE, "recipes/demo.toml")
QUICK = ["--set", "data.limit=300", "--set", "data.limit_test=100", "--set", "train.epochs=2"]


def run(*words, cwd=SOURCE, ok=True, given=None):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=cwd, input=given or "")
    if ok:
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def result(*words, **more):
    return json.loads(run(*words, "--json", **more).stdout.strip().splitlines()[-1])


def files(folder):
    return sorted(os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs)


class Predict(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        cls.run_dir = os.path.join(cls.folder, "digits")
        run("train", RECIPE, *QUICK, "--run", cls.run_dir)
        cls.pictures = os.path.join(cls.folder, "pictures")
        run("data", "convert", "digits", "--format", "images", "--to", cls.pictures, "--limit", "100")
        cls.arrays = os.path.join(cls.folder, "arrays")
        run("data", "convert", "digits", "--format", "npy", "--to", cls.arrays)
        cls.table = os.path.join(cls.folder, "flowers.csv")
        rows = [f"{a / 10},{b / 10},{'big' if a + b > 10 else 'small'}" for a in range(12) for b in range(12)]
        pathlib.Path(cls.table).write_text("wide,long,kind\n" + "\n".join(rows) + "\n")
        recipe = os.path.join(cls.folder, "flowers.toml")
        pathlib.Path(recipe).write_text(f'[model]\nname = "mlp"\nhidden = [8]\n[data]\nkind = "csv"\npath = "{cls.table}"\nlabel = "kind"\n'
                                        'holdout = 0.25\n[optim]\nname = "adam"\nlr = 0.02\n[train]\nepochs = 20\nbatch = 12\n')
        cls.flowers = os.path.join(cls.folder, "flowers")
        run("train", recipe, "--run", cls.flowers)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def out(self, name):
        return os.path.join(self.folder, name)

    def test_an_array_gets_the_answers_of_the_evaluation_in_all_formats(self):
        x = os.path.join(self.arrays, "test_x.npy")
        labels = numpy.load(os.path.join(self.arrays, "test_y.npy"))
        about = result("predict", self.run_dir, x, "-o", self.out("a.npy"))
        self.assertEqual(about["samples"], len(labels))
        p = numpy.load(self.out("a.npy"))
        self.assertEqual(p.shape, (len(labels), 10))
        numpy.testing.assert_allclose(p.sum(1), 1, atol=1e-5)
        whole = result("eval", self.run_dir)
        self.assertEqual(whole["samples"], 100)  # data.limit_test
        self.assertAlmostEqual((p.argmax(1) == labels)[:100].mean(), whole["accuracy"])
        run("predict", self.run_dir, x, "-o", self.out("a.csv"))
        rows = list(csv.DictReader(io.StringIO(pathlib.Path(self.out("a.csv")).read_text())))
        self.assertEqual([int(r["prediction"]) for r in rows], list(p.argmax(1)))
        self.assertEqual(rows[7]["input"], "7")
        numpy.testing.assert_allclose([float(r["p_3"]) for r in rows], p[:, 3], rtol=1e-5, atol=1e-9)
        run("predict", self.run_dir, x, "-o", self.out("a.jsonl"), "--cores", "1")
        lines = [json.loads(l) for l in pathlib.Path(self.out("a.jsonl")).read_text().splitlines()]
        self.assertEqual([l["label"] for l in lines], list(p.argmax(1)))
        numpy.testing.assert_allclose([l["probabilities"]["3"] for l in lines], p[:, 3], rtol=1e-6)
        self.assertEqual([n for n in os.listdir(self.folder) if n.endswith(".new")], [])

    def test_answers_do_not_depend_on_cores_or_neighbours(self):
        x = numpy.load(os.path.join(self.arrays, "test_x.npy"))
        numpy.save(self.out("few.npy"), x[100:103])
        before = pathlib.Path(self.out("few.npy")).read_bytes()
        over = run("predict", self.run_dir, self.out("few.npy"), "-o", self.out("few.npy"), ok=False)
        self.assertEqual((over.returncode, pathlib.Path(self.out("few.npy")).read_bytes()), (2, before))
        run("predict", self.run_dir, os.path.join(self.arrays, "test_x.npy"), "-o", self.out("one.npy"), "--cores", "1")
        run("predict", self.run_dir, os.path.join(self.arrays, "test_x.npy"), "-o", self.out("two.npy"), "--cores", "2")
        self.assertEqual(pathlib.Path(self.out("one.npy")).read_bytes(), pathlib.Path(self.out("two.npy")).read_bytes())
        run("predict", self.run_dir, self.out("few.npy"), "-o", self.out("three.npy"))
        numpy.testing.assert_allclose(numpy.load(self.out("three.npy")), numpy.load(self.out("one.npy"))[100:103], rtol=1e-4, atol=1e-6)

    def test_a_folder_of_pictures_and_one_of_them_get_the_same_answer(self):
        rows = list(csv.DictReader(io.StringIO(run("predict", self.run_dir, os.path.join(self.pictures, "test")).stdout)))
        self.assertEqual(len(rows), 100)
        self.assertEqual([r["input"] for r in rows], sorted(r["input"] for r in rows))
        one = result("predict", self.run_dir, rows[77]["input"])
        self.assertEqual(one["class"], rows[77]["prediction"])
        self.assertAlmostEqual(one["confidence"], float(rows[77]["confidence"]), places=5)
        right = sum(r["prediction"] == r["input"].split("/")[-2] for r in rows)
        p = result("predict", self.run_dir, "digits", "-o", self.out("set.npy"))
        self.assertEqual(p["samples"], 1000)
        labels = numpy.load(os.path.join(self.arrays, "test_y.npy"))
        self.assertEqual((numpy.load(self.out("set.npy")).argmax(1) == labels)[:100].sum(), right)

    def test_rows_from_a_file_the_command_line_and_standard_input(self):
        new = self.out("new.csv")
        pathlib.Path(new).write_text("wide,long\n0.1,0.2\n1.1,1.0\n")
        rows = list(csv.DictReader(io.StringIO(run("predict", self.flowers, new).stdout)))
        self.assertEqual([r["prediction"] for r in rows], ["small", "big"])
        self.assertEqual([r["input"] for r in rows], ["1", "2"])
        self.assertEqual(set(rows[0]), {"input", "prediction", "confidence", "p_big", "p_small"})
        piped = run("predict", self.flowers, "-", given="0.1,0.2\n1.1,1.0\n").stdout
        self.assertEqual([r["prediction"] for r in csv.DictReader(io.StringIO(piped))], ["small", "big"])
        labelled = list(csv.DictReader(io.StringIO(run("predict", self.flowers, self.table).stdout)))
        self.assertEqual(len(labelled), 144)
        said = run("predict", self.flowers, "1.1,1.0", "0.1,0.2").stdout.splitlines()
        self.assertTrue(said[0].startswith("1.1,1.0: big (") and said[1].startswith("0.1,0.2: small ("), said)

    def test_numbers_are_predicted(self):
        data = self.out("line.csv")
        pathlib.Path(data).write_text("x,y\n" + "".join(f"{i / 50},{2.5 + i / 25}\n" for i in range(100)))
        recipe = self.out("line.toml")
        pathlib.Path(recipe).write_text(f'[model]\nname = "mlp"\nhidden = [16]\n[data]\nkind = "csv"\npath = "{data}"\ntask = "regress"\n'
                                        'holdout = 0.2\n[optim]\nname = "adam"\nlr = 0.03\n[train]\nepochs = 60\nbatch = 16\n')
        run("train", recipe, "--run", self.out("line"))
        got = result("predict", self.out("line"), "1.0")
        self.assertLess(abs(got["prediction"]["output"] - 4.5), 0.3)
        errors = result("eval", self.out("line"), "--errors")["errors"]
        self.assertGreater(errors["worst"][0]["loss"], errors["worst"][-1]["loss"])

        self.refused("predict", self.out("line"), "1.0", "3e38", "-o", "a.csv", says=["1 of 2 answers", "that for '3e38'"])
        pathlib.Path(self.out("large.csv")).write_text("x,y\n1,2\n3e38,2\n")
        self.refused("eval", self.out("line"), "--data", self.out("large.csv"), says=["large.csv", "the loss is no number"])

    def test_a_table_is_answered_in_its_own_units_and_judged_by_its_columns(self):
        data, recipe, where = self.out("houses.csv"), self.out("houses.toml"), self.out("houses")
        factor = {"Bern": 3000, "Genf": 5000, "Chur": 2000}
        rows = [(city, size, factor[city] * size) for city in factor for size in range(40, 140)]
        pathlib.Path(data).write_text("city,size,price\n" + "".join(f"{c},{s},{p}\n" for c, s, p in rows))
        pathlib.Path(recipe).write_text(f'[model]\nname = "tabular"\nhidden = [32]\n[data]\nkind = "table"\npath = "{data}"\nlabel = "price"\n'
                                        'holdout = 0.2\n[optim]\nname = "adam"\nlr = 0.02\n[train]\nepochs = 60\nbatch = 24\n')
        run("train", recipe, "--run", where)
        new = self.out("new.jsonl")
        pathlib.Path(new).write_text("".join(json.dumps({"size": s, "city": c}) + "\n" for c, s, _ in rows))
        run("predict", where, new, "-o", self.out("prices.csv"))
        said = [float(r["price"]) for r in csv.DictReader(io.StringIO(pathlib.Path(self.out("prices.csv")).read_text()))]
        off = [abs(a - p) / p for a, (_, _, p) in zip(said, rows)]
        self.assertLess(sorted(off)[len(off) // 2], 0.1)
        one = result("predict", where, "Genf,100")
        self.assertLess(abs(one["prediction"]["price"] - 500000), 100000)
        unknown = run("predict", where, "-", given="city,size\nBasel,70\nBern,\n")
        self.assertIn("Basel", unknown.stderr)
        self.assertEqual(len(unknown.stdout.splitlines()), 3)
        errors = result("eval", where, "--errors", "--by", "city")["errors"]
        self.assertEqual([v["name"] for v in errors["by"]["values"]], ["Bern", "Chur", "Genf"])
        self.assertEqual(sum(v["samples"] for v in errors["by"]["values"]), 60)
        self.assertGreater(errors["worst"][0]["is"], 10000)
        self.assertIn("by size", run("eval", where, "--errors", "--by", "size").stdout)
        self.refused("eval", where, "--errors", "--by", "citty", says=["citty", "did you mean 'city'"])
        self.refused("predict", where, "Bern", says=["Bern"])

    def refused(self, *words, says):
        with tempfile.TemporaryDirectory() as empty:
            done = run(*words, cwd=empty, ok=False)
            self.assertEqual(done.returncode, 2, f"{words}: {done.stdout}{done.stderr}")
            self.assertEqual(files(empty), [], "something was written")
        for part in says:
            self.assertIn(part, done.stderr, words)

    def test_bad_input_is_named_all_at_once_and_nothing_is_written(self):
        broken = self.out("broken")
        os.makedirs(broken)
        first = os.path.join(self.pictures, "test", "0")
        shutil.copy(os.path.join(first, sorted(os.listdir(first))[0]), os.path.join(broken, "good.png"))
        for name in ("one.png", "two.png"):
            pathlib.Path(broken, name).write_bytes(b"no picture")
        self.refused("predict", self.run_dir, broken, "-o", "answers.csv", says=["one.png", "two.png"])
        self.assertEqual(run("predict", self.run_dir, broken, ok=False).stdout, "", "half an answer")
        numpy.save(self.out("small.npy"), numpy.zeros((3, 5), "float32"))
        self.refused("predict", self.run_dir, self.out("small.npy"), "nowhere.png", "-o", "a.csv", says=["small.npy", "[1, 28, 28]", "nowhere.png"])
        bad = self.out("bad.csv")
        pathlib.Path(bad).write_text("1,2\n3,x\n5\n")
        self.refused("predict", self.flowers, bad, says=["line 2, column 2: 'x'", "line 3: 1 cells instead of 2"])
        self.refused("predict", self.flowers, "1,2,3,4", says=["4 numbers", "reads 2"])
        self.refused("predict", self.run_dir, "digits", "-o", "answers.txt", says=[".csv, .jsonl or .npy"])
        self.refused("predict", self.flowers, os.path.join(os.path.dirname(bad), ".", "bad.csv"), "-o", bad, says=["written over what is asked"])
        self.refused("predict", self.run_dir, "digits", "-o", "/nowhere/answers.csv", says=["/nowhere/answers.csv"])
        os.makedirs(self.out("empty"), exist_ok=True)
        self.refused("predict", self.run_dir, self.out("empty"), says=["no PNG or JPEG"])
        self.refused("predict", self.flowers, first, says=["no pictures"])

    def test_errors_say_where_a_network_is_wrong(self):
        got = result("eval", self.run_dir, "--errors", "--worst", "4")
        classes = got["errors"]["classes"]
        self.assertEqual(sum(c["samples"] for c in classes), got["samples"])
        right = sum(c["samples"] * c["accuracy"] for c in classes)
        self.assertAlmostEqual(right / got["samples"], got["accuracy"])
        loss = sum(c["samples"] * c["loss"] for c in classes)
        self.assertAlmostEqual(loss / got["samples"], got["loss"], places=4)
        worst = got["errors"]["worst"]
        self.assertLessEqual(len(worst), 4)
        self.assertEqual([w["loss"] for w in worst], sorted((w["loss"] for w in worst), reverse=True))
        labels = numpy.load(os.path.join(self.arrays, "test_y.npy"))
        for w in worst:
            self.assertEqual(str(labels[w["sample"]]), w["is"])
            self.assertNotEqual(w["is"], w["said"])
        text = run("eval", self.run_dir, "--errors").stdout
        self.assertTrue("by class" in text and "worst mistakes" in text, text)
        self.refused("eval", self.run_dir, "--errors", "--by", "city", says=["not trained on a table"])

    def test_a_run_that_began_with_another_goes_on_without_it(self):
        source = self.out("source")
        shutil.copytree(self.run_dir, source)
        recipe = self.out("tuned.toml")
        pathlib.Path(recipe).write_text(f'extends = "{RECIPE}"\n[model]\nfreeze = ["conv*"]\n[model.init]\nfrom = "{source}"\nskip = ["fc3"]\n')
        where = self.out("tuned")
        words = ["train", recipe, *QUICK, "--set", "train.epochs=1", "--set", "schedule.name=constant", "--run", where]
        shown = run(*words).stdout
        self.assertIn("8 of 10 tensors", shown)
        self.assertIn("fc3.weight [10, 84] (as the recipe says)", shown)
        self.assertIn("sha256", pathlib.Path(where, "recipe.toml").read_text())
        shutil.rmtree(source)
        longer = words[:-2] + ["--set", "train.epochs=2", "--run", where, "--resume"]
        got = result(*longer)
        self.assertEqual(got["steps"], 10)
        self.refused("train", recipe, *QUICK, says=["model.init", source])
        self.refused("check", recipe, *QUICK, says=["model.init", source])
        self.assertEqual(result("eval", where)["samples"], 100)


if __name__ == "__main__":
    unittest.main(argv=["predict", *sys.argv[3:]])
