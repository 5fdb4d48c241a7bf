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
        for damage in ("", "[]", '{"version": 1, "size": 1e300}'):
            self.write("houses/samples.json", damage)
            broken = run("predict", "houses", new, cwd=self.at, ok=False)
            self.assertEqual(broken.returncode, 2)
            self.assertIn("samples.json", broken.stderr)
        gone = run("eval", "houses", cwd=self.at, ok=False)
        self.assertEqual(gone.returncode, 2)
        self.assertIn("houses.csv", gone.stderr)

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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
