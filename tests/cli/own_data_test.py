"""A new user's way from a file to answers. Every command of docs/your-own-data.md runs, and says what the page shows."""
import csv, json, os, pathlib, random, re, shutil, subprocess, sys, tempfile, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def run(*words, cwd, ok=True, stdin=""):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=cwd, input=stdin)
    if ok:
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stderr}"
    return done


def blocks(page):
    """The fenced blocks of a page: (kind, lines)."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [(kind, text.splitlines()) for kind, text in found]


def shape(line):
    """A line without its numbers and bars, which differ from machine to machine."""
    return re.sub(r"[\d.,]+(e[-+]\d+)?|[\u2581-\u2588]+|\s+", "", line)


class Tutorial(unittest.TestCase):
    def test_every_command_runs_and_says_what_the_page_shows(self):
        page = pathlib.Path(SOURCE, "docs", "your-own-data.md").read_text()
        with tempfile.TemporaryDirectory() as at:
            os.symlink(os.path.dirname(PROGRAM), os.path.join(at, "bin"))
            for name in ("share", "docs"):
                os.symlink(os.path.join(SOURCE, name), os.path.join(at, name))
            said, commands = "", 0
            for kind, lines in blocks(page):
                if kind == "sh":
                    said, commands = "", commands + len(lines)
                    for line in lines:
                        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, errors="replace", cwd=at,
                                              env={**os.environ, "PATH": f"{at}/bin:{os.environ['PATH']}"})
                        self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}{done.stderr}")
                        said += done.stdout + done.stderr
                elif kind == "text":
                    shapes = {shape(line) for line in said.splitlines()}
                    for line in lines:
                        if line.strip() not in ("", "..."):
                            self.assertIn(shape(line), shapes, f"the page shows: {line}\nand the program said:\n{said}")
            self.assertGreater(commands, 20)


class OwnData(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        pathlib.Path(self.at, name).write_text(text)

    def labels(self, rows=300):
        chance = random.Random(4)
        lines = ["x,y,above,left"]
        for _ in range(rows):
            x, y = chance.uniform(-1, 1), chance.uniform(-1, 1)
            lines.append(f"{x:.3f},{y:.3f},{int(y > 0)},{int(x < 0)}")
        return "\n".join(lines) + "\n"

    def test_init_writes_a_recipe_beside_that_train_takes_and_never_over_another(self):
        shutil.copy(os.path.join(SOURCE, "share", "examples", "houses.csv"), self.at)
        said = run("init", "houses.csv", cwd=self.at).stdout
        self.assertIn("echelon train houses.toml", said)
        result = json.loads(run("train", "houses.toml", "--json", cwd=self.at).stdout.splitlines()[-1])
        self.assertGreater(result["val_r2"], 0.9)
        before = pathlib.Path(self.at, "houses.toml").read_text()
        again = run("init", "houses.csv", cwd=self.at, ok=False)
        self.assertEqual(again.returncode, 2)
        self.assertIn("houses.toml exists already", again.stderr)
        self.assertEqual(pathlib.Path(self.at, "houses.toml").read_text(), before)
        self.assertEqual(run("init", "houses.csv", "-o", "-", cwd=self.at).stdout, before)

    def test_a_network_answers_when_its_data_are_gone(self):
        shutil.copy(os.path.join(SOURCE, "share", "examples", "houses.csv"), self.at)
        new = os.path.join(SOURCE, "share", "examples", "new-houses.csv")
        run("init", "houses.csv", cwd=self.at)
        run("train", "houses.toml", "--run", "houses", "--set", "train.epochs=3", cwd=self.at)
        with_data = run("predict", "houses", new, cwd=self.at).stdout
        self.write("story.txt", "the cat sees the sea. a dog likes the boat.\n" * 200)
        run("init", "story.txt", cwd=self.at)
        run("train", "story.toml", "--run", "story", "--set", "train.steps=2", cwd=self.at)
        spoken = run("sample", "story", "--prompt", "the", "--length", "20", cwd=self.at).stdout
        for name in ("houses.csv", "story.txt"):
            os.remove(os.path.join(self.at, name))
        self.assertEqual(run("predict", "houses", new, cwd=self.at).stdout, with_data)
        self.assertEqual(run("sample", "story", "--prompt", "the", "--length", "20", cwd=self.at).stdout, spoken)
        for whole, part, words in (("houses", "table.json", ("predict", "lost", new)),
                                   ("story", "tokens.txt", ("sample", "lost", "--prompt", "the", "--length", "5"))):
            shutil.copytree(os.path.join(self.at, whole), os.path.join(self.at, "lost"))
            os.remove(os.path.join(self.at, "lost", part))
            refused = run(*words, cwd=self.at, ok=False)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(f"lost/{part} is missing: copy the whole folder", refused.stderr)
            shutil.rmtree(os.path.join(self.at, "lost"))
        said = {("",): "an input is empty", (new, "-o", "nodir/o.csv"): "there is no folder nodir"}
        for words, part in said.items():
            refused = run("predict", "houses", *words, cwd=self.at, ok=False)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(part, refused.stderr)
        refused = run("train", "houses.toml", "--set", "model.init=" + new, cwd=self.at, ok=False)
        self.assertEqual(refused.returncode, 2)
        for damage in ("", "[]", '{"version": 1, "size": 1e300}'):
            self.write("houses/samples.json", damage)
            broken = run("predict", "houses", new, cwd=self.at, ok=False)
            self.assertEqual(broken.returncode, 2)
            self.assertIn("samples.json", broken.stderr)
        gone = run("eval", "houses", cwd=self.at, ok=False)
        self.assertEqual(gone.returncode, 2)
        self.assertIn("houses.csv", gone.stderr)

    def test_other_samples_judge_a_network_as_its_own_test_part_does(self):
        houses = pathlib.Path(SOURCE, "share", "examples", "houses.csv").read_text().splitlines()
        self.write("old.csv", "\n".join(houses[:400]) + "\n")
        self.write("new.csv", "\n".join(houses[:1] + houses[400:]) + "\n")
        self.write("new.tsv", "\n".join(row.replace(",", "\t") for row in houses[:1] + houses[400:]) + "\n")
        run("init", "old.csv", "--label", "price", "--ignore", "id", cwd=self.at)
        result = json.loads(run("train", "old.toml", "--run", "a", "--set", "train.epochs=3", "--set", "data.test=new.csv",
                                "--json", cwd=self.at).stdout.splitlines()[-1])
        os.remove(os.path.join(self.at, "old.csv"))
        for name in ("new.csv", "new.tsv"):
            other = json.loads(run("eval", "a", "--data", name, "--errors", "--by", "id", "--json", cwd=self.at).stdout)
            self.assertEqual((other["mae"], other["r2"]), (result["test_mae"], result["test_r2"]))
            self.assertEqual(len(houses[400:]), other["samples"])
            row = other["errors"]["worst"][0]["row"]
            price = float(houses[399 + row].split(",")[houses[0].split(",").index("price")])
            self.assertAlmostEqual(other["errors"]["worst"][0]["is"] / price, 1, places=4)
        quarters = other["errors"]["by"]["values"]  # of a column that the network does not read
        self.assertEqual(sum(v["samples"] for v in quarters), other["samples"])
        gone = run("eval", "a", cwd=self.at, ok=False)
        self.assertEqual(gone.returncode, 2)
        self.assertIn("echelon eval a --data FILE", gone.stderr)
        self.write("bare.csv", "area,rooms\n100,3\n")
        for words, says in ((["--data", "bare.csv"], "price"), (["--data", "nothing.csv"], "no such file"),
                            (["--data", "new.csv", "--split", "train"], "leave one out"),
                            (["--data", "new.csv", "--errors", "--by", "citi"], "did you mean 'city'?")):
            refused = run("eval", "a", *words, cwd=self.at, ok=False)
            self.assertEqual(refused.returncode, 2, words)
            self.assertIn(says, refused.stderr)

    def test_other_pictures_and_texts_judge_a_network_too(self):
        run("data", "convert", "digits", "--format", "images", "--to", "figures", "--limit", "60", cwd=self.at)
        run("init", "figures", cwd=self.at)
        result = json.loads(run("train", "figures.toml", "--run", "a", "--set", "train.epochs=1", "--json",
                                cwd=self.at).stdout.splitlines()[-1])
        for folder in ("figures", "figures/test"):
            other = json.loads(run("eval", "a", "--data", folder, "--json", cwd=self.at).stdout)
            self.assertEqual((other["loss"], other["accuracy"]), (result["test_loss"], result["test_accuracy"]))
        shutil.rmtree(os.path.join(self.at, "figures/test/3"))
        self.assertIn("its classes are", run("eval", "a", "--data", "figures/test", cwd=self.at, ok=False).stderr)
        self.write("story.txt", "the cat sees the sea. a dog likes the boat.\n" * 100)
        self.write("other.txt", "a boat sees the cat.\n" * 40)
        run("init", "story.txt", cwd=self.at)
        run("train", "story.toml", "--run", "b", "--set", "train.steps=2", "--set", "data.length=16", cwd=self.at)
        other = json.loads(run("eval", "b", "--data", "other.txt", "--json", cwd=self.at).stdout)
        self.assertEqual(other["samples"], (21 * 40 - 1) // 16)

    def test_several_labels_are_answered_by_name_with_probabilities(self):
        self.write("points.csv", self.labels())
        run("init", "points.csv", "--label", "above,left", cwd=self.at)
        run("train", "points.toml", "--run", "a", cwd=self.at)
        self.write("new.csv", "x,y\n-0.9,0.9\n0.9,-0.9\n-0.9,-0.9\n")
        rows = list(csv.DictReader(run("predict", "a", "new.csv", cwd=self.at).stdout.splitlines()))
        self.assertEqual([row["prediction"] for row in rows], ["above;left", "", "left"])
        self.assertTrue(all(0 <= float(row["p_above"]) <= 1 for row in rows), rows)
        one = json.loads(run("predict", "a", "-0.9,0.9", "--json", cwd=self.at).stdout)
        self.assertEqual(one["labels"], ["above", "left"])
        self.assertAlmostEqual(one["probabilities"]["above"], float(rows[0]["p_above"]), places=4)
        self.assertRegex(run("predict", "a", "0.9,0.9", cwd=self.at).stdout, r"above [\d.]+ %   not left [\d.]+ %")
        self.assertRegex(run("predict", "a", "0.9,-0.9", cwd=self.at).stdout, r": no label   not \w+ [\d.]+ %")

    def test_quantiles_are_answered_in_the_units_of_the_table(self):
        chance = random.Random(6)
        self.write("noise.csv", "x,y\n" + "".join(f"{x},{1000 + 100 * chance.random():.2f}\n" for x in [i % 7 for i in range(700)]))
        run("init", "noise.csv", "--label", "y", cwd=self.at)
        run("train", "noise.toml", "--run", "a", "--set", "loss.name=quantile", "--set", "loss.quantiles=[0.1, 0.5, 0.9]", cwd=self.at)
        answer = json.loads(run("predict", "a", "3", "--json", cwd=self.at).stdout)["prediction"]
        self.assertEqual(list(answer), ["y_0.1", "y_0.5", "y_0.9"])
        for name, expected in (("y_0.1", 1010), ("y_0.5", 1050), ("y_0.9", 1090)):
            self.assertLess(abs(answer[name] - expected), 15, answer)

    def test_strange_files_are_read_or_refused_with_the_cure(self):
        chance = random.Random(8)
        pairs = [(chance.random(), chance.random()) for _ in range(60)]
        self.write("twice.csv", "a,a,y\n" + "".join(f"{x:.3f},{y:.3f},{x + y:.3f}\n" for x, y in pairs))
        columns = json.loads(run("data", "info", "twice.csv", "--json", cwd=self.at).stdout)["columns"]
        self.assertEqual([c["name"] for c in columns], ["a", "a.2", "y"])
        self.write("huge.csv", "a,y\n" + "".join(f"{x * 1e300:e},{y * 1e200:e}\n" for x, y in pairs))
        run("init", "huge.csv", cwd=self.at)
        run("train", "huge.toml", "--set", "train.epochs=1", cwd=self.at)
        pathlib.Path(self.at, "any.txt").write_bytes(bytes(chance.randrange(256) for _ in range(5000)))
        self.assertIn('level = "byte"', run("init", "any.txt", "-o", "-", cwd=self.at).stdout)
        os.makedirs(os.path.join(self.at, "loose"))
        os.makedirs(os.path.join(self.at, "nothing"))
        self.write("loose/one.png", "")
        for name, says in (("loose", "a folder of its own"), ("nothing", "empty")):
            done = run("init", name, cwd=self.at, ok=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)

    def test_one_row_may_have_the_read_columns_alone(self):
        shutil.copy(os.path.join(SOURCE, "share", "examples", "houses.csv"), self.at)
        run("init", "houses.csv", cwd=self.at)
        run("train", "houses.toml", "--run", "a", "--set", "train.epochs=1", cwd=self.at)
        row = "120,4,Bern,1987,gas,yes,2023-05-01"
        price = json.loads(run("predict", "a", row, "--json", cwd=self.at).stdout)["prediction"]["price"]
        whole = json.loads(run("predict", "a", "7," + row, "--json", cwd=self.at).stdout)["prediction"]["price"]
        self.assertEqual(price, whole)
        self.assertIn("area, rooms, city", run("predict", "a", "120,4", cwd=self.at, ok=False).stderr)

    def test_json_rows_may_lack_keys_but_not_misspell_them(self):
        chance = random.Random(9)
        rows = [{"size": chance.random(), "colour": chance.choice(["red", "blue"]), "day": f"{chance.randint(10, 28)}.03.2024"} for _ in range(80)]
        self.write("things.jsonl", "".join(json.dumps({**row, "price": 5 * row["size"]}) + "\n" for row in rows))
        run("init", "things.jsonl", "--label", "price", cwd=self.at)
        run("train", "things.toml", "--run", "a", "--set", "train.epochs=1", cwd=self.at)
        lacking = run("predict", "a", '{"size": 0.5, "colour": "red"}', cwd=self.at)
        self.assertIn("column 'day': 1 of 1 rows have no value", lacking.stderr)
        slip = run("predict", "a", '{"size": 0.5, "color": "red", "day": "11.03.2024"}', cwd=self.at, ok=False)
        self.assertEqual(slip.returncode, 2)
        self.assertIn("did you mean 'color' for 'colour'?", slip.stderr)
        same = [run("predict", "a", json.dumps({"size": 0.5, "colour": "red", "day": day}), "--json", cwd=self.at).stdout
                for day in ("11.03.2024", "2024-03-11")]
        self.assertEqual(*[json.loads(text)["prediction"] for text in same])
        wrong = run("predict", "a", "0.5,red,soon", cwd=self.at, ok=False)
        self.assertIn("line 1, column 'day'", wrong.stderr)
        gone = run("predict", "a", "nothing.csv", cwd=self.at, ok=False)
        self.assertEqual(gone.returncode, 2)
        self.assertIn("there is no such file or folder", gone.stderr)

    def test_a_text_in_another_encoding_is_read_as_characters(self):
        for name, encoding in (("wide", "utf-16"), ("old", "latin-1")):
            pathlib.Path(self.at, f"{name}.txt").write_bytes(("Gr\u00fc\u00dfe aus Z\u00fcrich. " * 300).encode(encoding))
            run("data", "info", f"{name}.txt", cwd=self.at)
            run("init", f"{name}.txt", cwd=self.at)
            recipe = pathlib.Path(self.at, f"{name}.toml").read_text()
            self.assertIn(f'encoding = "{encoding}"', recipe)
            run("train", f"{name}.toml", "--run", name, "--set", "train.steps=1", "--set", "data.length=16", cwd=self.at)
            self.assertIn("U+00FC", pathlib.Path(self.at, name, "tokens.txt").read_text())

    def test_errors_of_labels_and_rows_of_the_table(self):
        self.write("points.csv", self.labels())
        run("init", "points.csv", "--label", "above,left", cwd=self.at)
        run("train", "points.toml", "--run", "a", "--set", "train.epochs=2", cwd=self.at)
        errors = json.loads(run("eval", "a", "--errors", "--split", "train", "--json", cwd=self.at).stdout)["errors"]
        rows = pathlib.Path(self.at, "points.csv").read_text().splitlines()
        self.assertEqual([label["name"] for label in errors["labels"]], ["above", "left"])
        for mistake in errors["worst"]:
            x, y, above, left = rows[mistake["row"]].split(",")  # the header is row 0
            self.assertEqual(mistake["is"], ["above"] * int(above) + ["left"] * int(left))
        self.assertIn("wrongly said", run("eval", "a", "--errors", cwd=self.at).stdout)

    def test_the_end_of_a_run_shows_its_curve_and_suggests_nothing_that_was_done(self):
        self.write("points.csv", self.labels())
        run("init", "points.csv", "--label", "above,left", cwd=self.at)
        said = run("train", "points.toml", "--run", "a", "--resume=auto", "--set", "train.epochs=3", cwd=self.at).stdout
        self.assertIn("train_loss", said)
        self.assertIn("over step", said)
        self.assertIn("echelon eval a --errors", said)
        self.assertNotIn("--cores 1", said)  # so small a network runs on one core by itself
        refused = run("train", "points.toml", "--run", "a", "--resume", "--set", "train.epochs=6", cwd=self.at, ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertNotIn("--cores", refused.stderr)


class Mistakes(unittest.TestCase):
    """What people do wrong, or in another order than expected: one message with the cure, exit code 2, nothing written."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = cls.folder.name
        shutil.copy(os.path.join(SOURCE, "share", "examples", "houses.csv"), cls.at)
        run("init", "houses.csv", "--label", "price", "--ignore", "id", cwd=cls.at)
        cls.words = ["train", "houses.toml", "--run", "runs/houses-1", "--set", "schedule.name=constant"]
        cls.shown = run(*cls.words, "--set", "train.epochs=2", cwd=cls.at).stdout

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def refused(self, *words, says, at=None):
        before = sorted(os.walk(self.at))
        done = run(*words, cwd=at or self.at, ok=False)
        self.assertEqual(done.returncode, 2, f"{words}: {done.stdout}{done.stderr}")
        self.assertEqual(done.stdout, "")
        self.assertEqual(sorted(os.walk(self.at)), before, f"{words} has written something")
        for part in says:
            self.assertIn(part, done.stderr, words)

    def test_a_run_that_is_over_keeps_its_figures(self):
        summary = pathlib.Path(self.at, "runs", "houses-1", "summary.json")
        before = json.loads(summary.read_text())
        again = run(*self.words, "--set", "train.epochs=2", "--resume", cwd=self.at).stdout
        self.assertIn("nothing to do", again)
        self.assertNotIn("samples/s", again)
        after = json.loads(summary.read_text())
        for key in ("samples_per_s", "seconds", "weights_sha256", "stopped_by"):
            self.assertEqual(after[key], before[key])
        self.refused(*self.words, "--set", "train.epochs=4", "--set", "model.dropout=0.5", "--resume",
                     says=["model.dropout", "It goes on with: echelon train runs/houses-1/recipe.toml --run runs/houses-1 --resume "
                           "--set train.epochs=4"])

    def test_data_instead_of_a_recipe_and_verbs_that_do_not_exist(self):
        os.makedirs(os.path.join(self.at, "my data"), exist_ok=True)
        pathlib.Path(self.at, "my data", "a b.png").write_bytes(b"x")
        self.refused("train", "houses.csv", says=["is no recipe but data", "echelon init houses.csv"])
        self.refused("train", "my data", says=["echelon init 'my data'"])
        self.refused("init", "my data/a b.png", says=["is one picture", "echelon predict RUN 'my data/a b.png'"])
        for words, near in ((["runs", "lst"], "list"), (["data", "inf"], "info"), (["models", "lst"], "list"),
                            (["bench", "trian"], "train"), (["systems", "shw"], "show"), (["plan", "shw"], "show")):
            self.refused(*words, says=[f"there is no verb '{' '.join(words)}'", f"did you mean '{near}'"])
        self.refused("runs", says=["`echelon runs` needs a verb: ", "list"])

    def test_too_little_and_places_that_cannot_be_written(self):
        pathlib.Path(self.at, "empty.txt").write_text("")
        self.refused("data", "tokens", "empty.txt", "--to", "e.bpe", says=["empty.txt: the file is empty"])
        self.refused("data", "tokens", "houses.csv", "--to", "/nodir/e.bpe", says=["/nodir/e.bpe cannot be written"])
        self.refused("train", "houses.toml", "--folds", "900", says=["900 folds of 540 samples"])
        self.refused("predict", "houses-1", "big,4,Bern,old,gas,maybe,2023-05-01", says=["'big'", "'old'", "'maybe'"])

    def test_pictures_that_are_damaged_or_of_one_class(self):
        at = os.path.join(self.at, "pets")
        run("data", "convert", "digits", "--format", "images", "--to", at, "--limit", "40", cwd=self.at)
        run("init", "pets", cwd=self.at)
        self.assertEqual(run("data", "show", "pets.toml", "--png", "/nodir/x.png", cwd=self.at, ok=False).returncode, 2)
        names = sorted(os.listdir(os.path.join(at, "train", "3")))[:2]
        whole = {name: pathlib.Path(at, "train", "3", name).read_bytes() for name in names}
        for name, content in whole.items():
            pathlib.Path(at, "train", "3", name).write_bytes(content[:-20])
        for words in (["train", "pets.toml"], ["init", "pets", "-o", "again.toml"], ["data", "info", "pets"]):
            self.refused(*words, says=[f"{name}: a corrupt PNG picture" for name in names] + ["take them out of the folder"])
        for name in os.listdir(os.path.join(at, "train")):
            if name != "3":
                shutil.rmtree(os.path.join(at, "train", name))
        for name, content in whole.items():
            pathlib.Path(at, "train", "3", name).write_bytes(content)
        self.refused("train", "pets.toml", "--set", "train.evaluate=false", "--set", "train.batch=2", says=["one class only ('3')"])

    def test_several_targets_are_judged_each_in_its_own_units(self):
        rows = [f"{i},{2 * i},{1000 * i}" for i in range(60)]
        pathlib.Path(self.at, "two.csv").write_text("x,small,large\n" + "\n".join(rows) + "\n")
        run("init", "two.csv", "--label", "small,large", cwd=self.at)
        result = json.loads(run("train", "two.toml", "--set", "train.epochs=2", "--json", cwd=self.at).stdout.splitlines()[-1])
        self.assertGreater(result["test_mae[large]"], 50 * result["test_mae[small]"])
        where = result["run_dir"]
        errors = json.loads(run("eval", where, "--errors", "--by", "x", "--json", cwd=self.at).stdout)["errors"]
        self.assertIn(errors["worst"][0]["target"], ("small", "large"))
        self.assertGreater(errors["by"]["values"][0]["mae[large]"], errors["by"]["values"][0]["mae[small]"])
        self.assertIn("furthest off", run("eval", where, "--errors", cwd=self.at).stdout)
        self.assertNotIn("test_mae", result)
        self.assertIn("test_r2", result)

        shown = run("eval", where, cwd=self.at).stdout
        self.assertRegex(shown, r"rmse\[large\]  \d")  # a name that is longer than the others

    def test_the_worst_mistakes_name_pictures_by_their_files(self):
        run("data", "convert", "digits", "--format", "images", "--to", "mixed", "--limit", "60", cwd=self.at)
        shutil.move(os.path.join(self.at, "mixed", "train"), os.path.join(self.at, "one-folder"))
        run("init", "one-folder", cwd=self.at)  # one folder, cut at random
        run("train", "one-folder.toml", "--run", "folder-run", "--set", "train.epochs=1", "--set", "optim.lr=1e-9", cwd=self.at)
        worst = json.loads(run("eval", "folder-run", "--errors", "--split", "train", "--json", cwd=self.at).stdout)["errors"]["worst"]
        self.assertTrue(worst)
        for mistake in worst:
            self.assertTrue(os.path.isfile(os.path.join(self.at, mistake["file"])), mistake)
            self.assertEqual(pathlib.Path(mistake["file"]).parent.name, mistake["is"])
        self.assertIn(worst[0]["file"], run("eval", "folder-run", "--errors", "--split", "train", cwd=self.at).stdout)

    def test_numbers_of_folds_keep_their_digits(self):
        rows = [f"{i % 13},{(i % 13) / 1e5 + (i % 7) / 1e8:.9f}" for i in range(120)]
        pathlib.Path(self.at, "small.csv").write_text("x,y\n" + "\n".join(rows) + "\n")
        run("init", "small.csv", "--label", "y", cwd=self.at)
        shown = run("train", "small.toml", "--set", "train.epochs=2", "--folds", "2", cwd=self.at).stdout
        line = next(l for l in shown.splitlines() if l.startswith("val_mae"))
        self.assertTrue(all(float(word) > 0 for word in line.split()[1:]), line)
        self.assertNotIn("test_accuracy", run("runs", "show", "small-folds-1/fold-1", cwd=self.at).stdout)

    def test_frozen_layers_are_counted_wherever_they_lie(self):
        recipe = '[model]\nname = "resnet20"\nfreeze = ["conv*", ".bn1"]\n[data]\nkind = "synthetic"\nmake = "images"\nsamples = 20\n' \
                 'shape = [3, 32, 32]\n[optim]\nname = "sgd"\nlr = 0.1\n[train]\nepochs = 1\nbatch = 10\n'
        pathlib.Path(self.at, "frozen.toml").write_text(recipe)
        said = run("check", "frozen.toml", cwd=self.at).stdout
        self.assertRegex(said, r"frozen: 21 of \d+ tensors")
        self.assertIn('".bn1" fits little', said)
        self.assertNotIn('"conv*" fits little', said)

    def test_rows_may_be_cut_by_a_column_with_dates(self):
        done = run("train", "houses.toml", "--set", "data.time=sold", "--set", "train.epochs=1", "--run", "timed", cwd=self.at)
        self.assertIn("the rows are in the order of 'sold'", done.stdout)
        lines = pathlib.Path(self.at, "houses.csv").read_text().splitlines()
        dates = [line.split(",")[lines[0].split(",").index("sold")] for line in lines]
        worst = json.loads(run("eval", "timed", "--errors", "--split", "test", "--worst", "60", "--json", cwd=self.at).stdout)["errors"]["worst"]
        latest = sorted(dates[1:])[-60:]
        self.assertTrue(all(dates[w["row"]] >= latest[0] for w in worst), worst[:3])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
