"""A table of one's own, from the file to a trained network: data info, init, train, check; and what is refused."""
import json, os, pathlib, random, subprocess, sys, tempfile, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def run(*words, cwd, ok=True):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)
    if ok:
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stderr}"
    return done


def comma(number):
    return f"{number:.2f}".replace(".", ",")


def houses(rows=400):
    """Prices in the hundred thousands that follow from area, city and year, in a table as people have them."""
    chance = random.Random(1)
    lines = ["id;area;city;built;sold;price"]
    for i in range(rows):
        area, city, built = chance.uniform(40, 250), chance.choice(["Bern", "Basel", "Z\u00fcrich"]), chance.randint(1900, 2020)
        price = 50000 + 3000 * area + {"Bern": 0, "Basel": 40000, "Z\u00fcrich": 250000}[city] + 500 * (built - 1900)
        price += chance.gauss(0, 10000)
        cells = [str(i + 1), "" if chance.random() < 0.05 else comma(area), city, str(built),
                 f"{chance.randint(1, 28)}.{chance.randint(1, 12)}.2021", comma(price)]
        lines.append(";".join(cells))
    return "\n".join(lines) + "\n"


class Tables(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = self.folder.name
        pathlib.Path(self.at, "houses.csv").write_text(houses(), encoding="latin-1")

    def tearDown(self):
        self.folder.cleanup()

    def test_info_shows_the_columns(self):
        text = run("data", "info", "houses.csv", cwd=self.at).stdout
        for part in ("Latin-1", "semicolons", "decimal comma", "area", "number", "category", "date", "to predict",
                     "it numbers the rows", "%", "\u2588"):
            self.assertIn(part, text)
        info = json.loads(run("data", "info", "houses.csv", "--json", cwd=self.at).stdout)
        columns = {c["name"]: c for c in info["columns"]}
        self.assertEqual(info["format"]["delimiter"], ";")
        self.assertEqual(columns["sold"]["type"], "date")
        self.assertEqual(columns["city"]["distinct"], 3)
        self.assertTrue(0 < columns["area"]["missing_share"] < 0.2)
        self.assertEqual(sum(columns["price"]["histogram"]), 400)

    def test_a_regression_learns_at_once_and_the_same_again(self):
        run("init", "houses.csv", "--label", "price", "--ignore", "id", "-o", "houses.toml", cwd=self.at)
        done = run("train", "houses.toml", "--run", "a", "--json", cwd=self.at)
        result = json.loads(done.stdout.splitlines()[-1])
        # In units of the deviation of the prices: the noise alone is below 0.01, knowing nothing is 1.
        self.assertLess(result["test_loss"], 0.1)
        notes = pathlib.Path(self.at, "a", "recipe.toml").read_text()
        self.assertIn("filled with the median", notes)
        again = run("train", "houses.toml", "--run", "b", "--json", "--workers", "2", cwd=self.at)
        self.assertEqual(json.loads(again.stdout.splitlines()[-1])["weights_sha256"], result["weights_sha256"])

    def test_a_run_encodes_other_rows_as_it_encoded_its_own(self):
        run("init", "houses.csv", "--label", "price", "-o", "houses.toml", cwd=self.at)
        run("train", "houses.toml", "--run", "a", cwd=self.at)
        self.assertTrue(os.path.exists(os.path.join(self.at, "a", "table.json")))
        # Only large houses of one city: their own means and deviations would turn them into average ones.
        table = pathlib.Path(self.at, "houses.csv")
        lines = table.read_text(encoding="latin-1").splitlines()
        large = [l for l in lines[1:] if l.split(";")[1] and float(l.split(";")[1].replace(",", ".")) > 180]
        table.write_text("\n".join(lines[:1] + large) + "\n", encoding="latin-1")
        loss = json.loads(run("eval", "a", "--split", "train", "--json", cwd=self.at).stdout)["loss"]
        self.assertLess(loss, 0.1)
        refused = run("train", "houses.toml", "--run", "a", "--resume", cwd=self.at, ok=False)
        self.assertEqual(refused.returncode, 2)

    def test_classes_of_words_and_numbers(self):
        chance = random.Random(2)
        rows = []
        for i in range(300):
            x, y = chance.gauss(0, 1), chance.gauss(0, 1)
            rows.append(json.dumps({"x": x, "y": 1000 * y, "kind": "in" if x * x + y * y < 1.4 else "out"}))
        pathlib.Path(self.at, "rows.jsonl").write_text("\n".join(rows))
        run("init", "rows.jsonl", "--label", "kind", "-o", "rows.toml", cwd=self.at)
        result = json.loads(run("train", "rows.toml", "--run", "c", "--json", cwd=self.at).stdout.splitlines()[-1])
        self.assertGreater(result["test_accuracy"], 0.85)

    def test_a_number_beyond_reach_is_refused_with_its_line_and_column(self):
        rows = [f"{i % 17}.5,{i % 5},{i % 17 + i % 5}.25" for i in range(60)]
        pathlib.Path(self.at, "other.csv").write_text("\n".join(["a,b,price"] + rows[:3] + ["1e39,2,3"] + rows[3:]) + "\n")
        refused = run("init", "other.csv", "--label", "price", "-o", "o.toml", cwd=self.at, ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("line 5, column 'a'", refused.stderr)

    def test_a_cell_that_no_answer_can_be_made_of_is_refused_in_every_verb(self):
        run("init", "houses.csv", "--label", "price", "-o", "houses.toml", cwd=self.at)
        run("train", "houses.toml", "--run", "a", "--set", "train.epochs=2", cwd=self.at)
        header = "area;city;built;sold;price\n"
        rows = "100;Bern;1950;1.2.2021;400000\n1e45;Bern;1950;1.2.2021;400000\n1e39;Bern;1950;1.2.2021;1e44\n"
        pathlib.Path(self.at, "new.csv").write_text(header + rows)
        for words in (("predict", "a", "new.csv", "-o", "answers.csv"), ("eval", "a", "--data", "new.csv")):
            refused = run(*words, cwd=self.at, ok=False)
            self.assertEqual(refused.returncode, 2, refused.stdout)
            self.assertIn("new.csv: line 3, column 'area': 1e+45", refused.stderr)
            self.assertIn("new.csv: line 4, column 'area': 1e+39", refused.stderr)
            self.assertEqual("line 4, column 'price'" in refused.stderr, words[0] == "eval")
        self.assertFalse(os.path.exists(os.path.join(self.at, "answers.csv")))
        os.mkdir(os.path.join(self.at, "parts"))
        lines = pathlib.Path(self.at, "houses.csv").read_text(encoding="latin-1").splitlines()
        pathlib.Path(self.at, "parts/train.csv").write_text("\n".join(lines))
        cells = lines[9].split(";")
        cells[1] = "1e30"
        pathlib.Path(self.at, "parts/test.csv").write_text("\n".join(lines[:9] + [";".join(cells)]))
        refused = run("train", "houses.toml", "--set", "data.path=parts", "--set", "data.validation=0", "--set", "data.test=0", "--run", "b",
                      cwd=self.at, ok=False)
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn("line 10, column 'area'", refused.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.at, "b")))

    def test_the_worst_rows_are_counted_as_rows_and_not_as_lines(self):
        rows = [f'{i},"two\nlines {i % 3}",{2 * i}.5' for i in range(60)]
        rows[40] = '40,"two\nlines 1",2000'
        pathlib.Path(self.at, "n.csv").write_text("\n".join(["a,note,y"] + rows) + "\n")
        run("init", "n.csv", cwd=self.at)
        run("train", "n.toml", "--run", "n", "--set", "train.epochs=2", cwd=self.at)
        worst = []
        for split in ("train", "validation", "test"):
            told = json.loads(run("eval", "n", "--split", split, "--errors", "--worst", "1", "--json", cwd=self.at).stdout)
            worst += told["errors"]["worst"]
        self.assertEqual(max(worst, key=lambda w: w["loss"])["row"], 41)

    def test_a_table_without_a_header_is_known_again(self):
        chance = random.Random(3)
        rows = [f"{chance.gauss(i % 2, 1):.3f},{chance.gauss(0, 1):.3f},{'ab'[i % 2]}" for i in range(60)]
        pathlib.Path(self.at, "n.csv").write_text("\n".join(rows) + "\n")
        run("init", "n.csv", cwd=self.at)
        run("train", "n.toml", "--run", "n", "--set", "train.epochs=2", cwd=self.at)
        said = run("eval", "n", cwd=self.at)
        self.assertNotIn("are not those", said.stdout + said.stderr)

    def test_weights_that_stand_for_other_columns_and_classes_are_pointed_out(self):
        chance = random.Random(3)
        rows = [f"{chance.gauss(i % 2, 1):.3f},{chance.gauss(0, 1):.3f},{'ab'[i % 2]}" for i in range(60)]
        pathlib.Path(self.at, "one.csv").write_text("wide,long,kind\n" + "\n".join(rows) + "\n")
        pathlib.Path(self.at, "two.csv").write_text("wide,deep,kind\n" + "\n".join(rows).replace("b", "c") + "\n")
        for name in ("one", "two"):
            run("init", name + ".csv", cwd=self.at)
        run("train", "one.toml", "--run", "one", "--set", "train.epochs=1", cwd=self.at)
        begun = ("train", "two.toml", "--set", "train.epochs=1", "--set", "model.init=one", "--run")
        said = run(*begun, "two", cwd=self.at)
        for part in ("one read other columns (long there, deep here)", "one tells other classes apart (b there, c here)"):
            self.assertIn(part, said.stdout + said.stderr)
        again = run("train", "one.toml", "--set", "train.epochs=1", "--set", "model.init=one", "--run", "three", cwd=self.at)
        for part in ("other columns", "other classes"):
            self.assertNotIn(part, again.stdout + again.stderr)

    def test_a_target_that_is_always_the_same_is_refused(self):
        pathlib.Path(self.at, "s.csv").write_text("a,y\n" + "".join(f"{i},7.5\n" for i in range(60)))
        refused = run("init", "s.csv", cwd=self.at, ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("column 'y' is to be predicted, but has one value only ('7.5')", refused.stderr)

    def test_the_one_value_that_is_no_date_is_named(self):
        days = [f"2021-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(300)]
        days[100] = "2020-02-31"
        pathlib.Path(self.at, "d.csv").write_text("\n".join(["day,price"] + [f"{d},{i}.5" for i, d in enumerate(days)]) + "\n")
        said = run("init", "d.csv", "--label", "price", "-o", "-", cwd=self.at).stdout
        self.assertIn("'2020-02-31' on line 102 is none", " ".join(said.replace("#", " ").split()))

    def test_an_embedding_has_a_row_for_every_value(self):
        names = "\n".join(["city,price"] + [f"c{i % 30},{i % 30}.5" for i in range(300)]) + "\n"
        pathlib.Path(self.at, "c.csv").write_text(names)
        recipe = pathlib.Path(self.at, "c.toml")
        text = """[model]
name = "layers"
layers = [{ type = "embedding", rows = ROWS, width = 4 }, { type = "flatten" }, { type = "linear", out = 1 }]
[data]
kind = "table"
path = "c.csv"
label = "price"
one_hot = 16
test = 0.1
[train]
epochs = 1
batch = 32
"""
        recipe.write_text(text.replace("ROWS", "20"))
        for words in (("check", "c.toml"), ("train", "c.toml", "--run", "c")):
            refused = run(*words, cwd=self.at, ok=False)
            self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
            for part in ("'embedding'", "column 'city'", "set rows = 31"):
                self.assertIn(part, refused.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.at, "c")))
        recipe.write_text(text.replace("ROWS", "31"))
        run("train", "c.toml", "--run", "c", cwd=self.at)

    def test_bad_columns_are_named_and_nothing_is_written(self):
        done = run("init", "houses.csv", "--label", "prise", "--ignore", "idd", "-o", "h.toml", cwd=self.at, ok=False)
        self.assertEqual(done.returncode, 2)
        for part in ("prise", "did you mean 'price'", "idd"):
            self.assertIn(part, done.stderr)
        self.assertEqual(os.listdir(self.at), ["houses.csv"])

    def test_formats_in_the_help_can_be_written(self):
        text = run("data", "convert", "--help", cwd=self.at).stdout
        words = text.split()
        shown = [words[i + 1] for i, w in enumerate(words[:-1]) if w == "--format" and words[i + 1].isalpha()]
        shown = [w for w in shown if w.islower()]
        self.assertTrue(shown)
        for name in shown:
            run("data", "convert", "houses.csv" if name == "csv" else "digits", "--format", name, "--to", name, cwd=self.at)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
