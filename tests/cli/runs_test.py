"""Runs that go on, longer or not, sweeps, and what `runs list` and `runs compare` say: as a user calls them."""
import fcntl, json, os, pathlib, pty, re, shlex, struct, subprocess, sys, tempfile, termios, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECIPE = os.path.join(SOURCE, "recipes/demo.toml")
QUICK = ["--set", "data.limit=200", "--set", "data.limit_test=50", "--set", "train.epochs=2"]


def run(*words, cwd=SOURCE, ok=True, stdin=None):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)
    if ok:
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def result(*words, **more):
    return json.loads(run(*words, "--json", **more).stdout.strip().splitlines()[-1])


def files(folder):
    return sorted(os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs)


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def train(self, name, *words, **more):
        return result("train", RECIPE, *QUICK, "--run", os.path.join(self.folder, name), *words, **more)

    def test_a_longer_run_has_the_weights_and_the_recipe_of_one_that_was_so_long_from_the_start(self):
        constant = ["--set", "schedule.name=constant"]
        where = os.path.join(self.folder, "a")
        self.train("a", *constant)
        longer = result("train", os.path.join(where, "recipe.toml"), "--run", where, "--resume", "--set", "train.epochs=3")
        self.assertEqual(longer["epochs"], 3)
        whole = self.train("b", *constant, "--set", "train.epochs=3")
        self.assertEqual(longer["weights_sha256"], whole["weights_sha256"])
        self.assertIn("epochs = 3", pathlib.Path(where, "recipe.toml").read_text())
        # What the folder says makes the weights that are in it, and goes on with them.
        again = result("train", os.path.join(where, "recipe.toml"), "--run", os.path.join(self.folder, "c"))
        self.assertEqual(again["weights_sha256"], longer["weights_sha256"])
        self.assertEqual(result("train", os.path.join(where, "recipe.toml"), "--run", where, "--resume")["epochs"], 3)

    def test_a_length_that_the_rates_follow_cannot_change(self):
        where = os.path.join(self.folder, "a")
        self.train("a", "--set", "schedule.name=cosine")
        before = {f: pathlib.Path(f).read_bytes() for f in files(where) if "/logs/" not in f}
        done = run("train", os.path.join(where, "recipe.toml"), "--run", where, "--resume", "--set", "train.epochs=3", ok=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("schedule cosine", done.stderr)
        self.assertIn("--set model.init=" + where, done.stderr)
        self.assertEqual({f: pathlib.Path(f).read_bytes() for f in files(where) if "/logs/" not in f}, before)
        advice = [l for l in done.stderr.splitlines() if "begins with its weights: " in l][0].split("weights: ")[1]
        words = shlex.split(advice)[1:]
        self.assertEqual(result(*words, "--run", os.path.join(self.folder, "b"))["stopped_by"], "end")

    def test_advice_is_never_the_refused_command(self):
        data = os.path.join(self.folder, "rows.csv")
        pathlib.Path(data).write_text("a,b,label\n" + "".join(f"{i},{i % 7},{i % 2}\n" for i in range(40)))
        recipe = os.path.join(self.folder, "rows.toml")
        pathlib.Path(recipe).write_text(f'[model]\nname = "mlp"\nhidden = [4]\n[data]\nkind = "csv"\npath = "{data}"\nholdout = 0.2\n'
                                        '[train]\nepochs = 1\nbatch = 8\n')
        where = os.path.join(self.folder, "run")
        run("train", recipe, "--run", where)
        resumed = ("train", os.path.join(where, "recipe.toml"), "--run", where, "--resume")
        refused = run(*resumed, "--set", "train.batch=4", ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("goes on with: echelon " + " ".join(resumed), refused.stderr)
        run(*resumed)
        pathlib.Path(data).write_text(pathlib.Path(data).read_text() + "1,2,1\n")
        refused = run(*resumed, ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertNotIn(" ".join(resumed), refused.stderr)
        self.assertIn("A new run: echelon train", refused.stderr)

    def test_other_transforms_are_another_training(self):
        self.train("a")
        where = os.path.join(self.folder, "a")
        done = run("train", RECIPE, *QUICK, "--run", where, "--resume", "--set", 'data.transform=[{kind="noise"}]', ok=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("transform", done.stderr)

    def test_resume_auto_starts_or_goes_on(self):
        where = os.path.join(self.folder, "a")
        words = ("train", RECIPE, *QUICK, "--run", where)
        os.mkdir(where)
        refused = run(*words, "--resume", ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--resume=auto", refused.stderr)
        first = result(*words, "--resume=auto")
        self.assertEqual(first["steps"], 8)
        self.assertEqual(result(*words, "--resume=auto")["weights_sha256"], first["weights_sha256"])
        refused = run(*words, "--resume=always", ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--resume=auto", refused.stderr)
        # Without --run: the newest run of the recipe, or a new one.
        for _ in range(2):
            self.assertEqual(result("train", RECIPE, *QUICK, "--resume=auto", cwd=self.folder)["run_dir"], "runs/demo-1")

    def test_a_run_that_cannot_be_written_is_not_gone_on_with(self):
        self.train("a")
        where = os.path.join(self.folder, "a")
        link = os.path.join(self.folder, "proc")  # nobody writes here, not even root
        os.symlink("/proc/self/fd", link)
        done = run("train", RECIPE, *QUICK, "--run", os.path.join(link, "run"), ok=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        done = run("init", "digits", "-o", os.path.join(where, "recipe.toml", "x.toml"), ok=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        env = dict(os.environ, ECHELON_DATA=os.path.join(where, "recipe.toml"))
        done = subprocess.run([PROGRAM, "data", "get", "mnist"], capture_output=True, text=True, env=env, cwd=self.folder)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("ECHELON_DATA", done.stderr)

    def test_paths_in_commands_to_copy_are_quoted(self):
        where = os.path.join(self.folder, "my run")
        out = run("train", RECIPE, *QUICK, "--run", where).stdout
        self.assertIn(f"echelon runs show '{where}'", out)
        self.assertIn(f"echelon eval '{where}' --errors", out)

    def test_what_was_just_done_is_not_suggested(self):
        def same(*words):
            return [l for l in run("train", RECIPE, *QUICK, *words).stdout.splitlines() if "bit for bit" in l]
        self.assertEqual(len(same("--run", os.path.join(self.folder, "a"), "--cores", "2")), 1)
        self.assertEqual(same("--run", os.path.join(self.folder, "b"), "--cores", "1"), [])

    def test_misplaced_flags_and_settings_are_led_to_their_place(self):
        for words, says in ((["--epochs", "3"], "--set train.epochs=3"), (["--lr=0.1"], "--set optim.lr=0.1"),
                            (["--set", "lr=3"], "optim.lr"), (["--workers", "two"], "a whole number from 1 to 100000, not 'two'"),
                            (["--run", "x", "--sistem", "bsp"], "did you mean '--system'?"), (["more"], "no place for 'more'")):
            with tempfile.TemporaryDirectory() as empty:
                done = run("train", RECIPE, *words, cwd=empty, ok=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(says, done.stdout + done.stderr)
                self.assertEqual(files(empty), [])

    def test_list_says_when_what_and_how_good_and_who_runs(self):
        root = os.path.join(self.folder, "runs")
        os.mkdir(root)
        got = self.train("runs/a")
        os.mkdir(os.path.join(root, "b"))
        pathlib.Path(root, "b", "recipe.toml").write_text('[model]\nname = "mlp"\n')
        run("compare", RECIPE, *QUICK, "--systems", "bsp", "--root", root)
        runs = {r["name"]: r for r in json.loads(run("runs", "list", "--root", root, "--json").stdout)}
        self.assertEqual(set(runs), {"a", "b", "compare-1/bsp"})
        self.assertEqual(runs["a"]["model"], "lenet5")
        self.assertEqual(runs["a"]["state"], "end")
        self.assertGreaterEqual(runs["a"]["best"]["value"], got["test_accuracy"])
        self.assertGreater(runs["a"]["started"], 1.7e9)
        self.assertEqual(runs["b"]["state"], "crashed")
        holder = subprocess.Popen(["flock", "-x", os.path.join(root, "b"), "sh", "-c", "echo held; cat"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.assertEqual(holder.stdout.readline(), b"held\n")
        text = run("runs", "list", "--root", root).stdout
        holder.communicate()
        self.assertIn("running", [l for l in text.splitlines() if l.startswith("b ")][0])
        line = [l for l in text.splitlines() if l.startswith("a ")][0]
        for word in ("lenet5", "accuracy", " 20", ":"):
            self.assertIn(word, line)

    def test_a_sweep_runs_all_values_and_compares_them(self):
        with tempfile.TemporaryDirectory() as empty:
            done = run("train", RECIPE, *QUICK, "--set", "optim.lr=0.1,0.2", "--set", "train.batch=7,x", cwd=empty, ok=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("train.batch", done.stderr)
            for equal in ("optim.lr=0.1,0.1", "optim.lr=0.1,1e-1"):
                done = run("train", RECIPE, *QUICK, "--set", equal, cwd=empty, ok=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn("are the same value", done.stderr)
            self.assertEqual(files(empty), [])
        out = result("train", RECIPE, *QUICK, "--set", "optim.lr=0.01,0.02", "--set", "train.seed=1,2", "--set", "train.epochs=1",
                     cwd=self.folder)
        self.assertEqual([r["name"] for r in out], ["lr=0.01,seed=1", "lr=0.01,seed=2", "lr=0.02,seed=1", "lr=0.02,seed=2"])
        self.assertEqual([r["recipe"]["optim.lr"] for r in out], ["0.01", "0.01", "0.02", "0.02"])
        self.assertEqual(len({r["summary"]["weights_sha256"] for r in out}), 4)
        alone = self.train("alone", "--set", "optim.lr=0.02", "--set", "train.seed=2", "--set", "train.epochs=1")
        self.assertEqual(out[3]["summary"]["weights_sha256"], alone["weights_sha256"])
        paths = [os.path.join(self.folder, r["run_dir"]) for r in out]
        text = run("runs", "compare", *paths[:3]).stdout
        for words in ("what differed", "optim.lr", "train.seed", "no two have the same weights"):
            self.assertIn(words, text)
        self.assertIn("the same bits: ", run("runs", "compare", paths[3], os.path.join(self.folder, "alone")).stdout)
        refused = run("runs", "compare", "nowhere", "neither", ok=False)
        self.assertEqual(refused.returncode, 2)
        self.assertTrue("nowhere" in refused.stderr and "neither" in refused.stderr)

    def test_a_list_in_brackets_is_one_value(self):
        got = result("train", RECIPE, *QUICK, "--set", "model.name=mlp", "--set", "model.hidden=[8, 4]", "--set", "train.epochs=1",
                     "--run", os.path.join(self.folder, "a"))
        self.assertEqual(got["stopped_by"], "end")


class Terminal(unittest.TestCase):
    def shown(self, columns, *words):
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        child = subprocess.Popen([PROGRAM, *words], stdout=its, cwd=SOURCE)
        os.close(its)
        out = b""
        try:
            while piece := os.read(ours, 65536):
                out += piece
        except OSError:  # its side is closed
            pass
        os.close(ours)
        self.assertEqual(child.wait(), 0)
        return out.decode().splitlines()

    def test_systems_have_a_line_of_description_and_say_which_columns_have_no_room(self):
        lines = self.shown(80, "systems")
        self.assertTrue(any(l.startswith("easgd ") and "Elastic averaging SGD" in l for l in lines))
        self.assertIn("topology", " ".join(lines[-4:]))
        self.assertNotIn("no room", " ".join(self.shown(400, "systems")[-4:]))

    def test_words_are_never_broken_by_the_edge(self):
        for columns in (60, 80, 110):
            self.assertLessEqual(max(map(len, self.shown(columns, "systems", "show", "easgd"))), columns)

    def test_runs_fit_into_a_terminal_of_80_columns(self):
        with tempfile.TemporaryDirectory() as root:
            long = os.path.join(root, "a-run-with-a-rather-long-name")
            lines = self.shown(80, "train", RECIPE, *QUICK, "--run", long)
            run("train", RECIPE, *QUICK, "--set", "optim.lr=0.03", "--set", "train.seed=2", "--set", "schedule.name=constant",
                "--set", "train.patience=9", "--run", os.path.join(root, "b"))
            lines += self.shown(80, "runs", "list", "--root", root)
            lines += self.shown(80, "runs", "show", long)
            compared = self.shown(80, "runs", "compare", "--root", root, "a-run-with-a-rather-long-name", "b")
            for line in lines + compared:
                seen = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).split("\r")[-1]
                if root not in seen and "train " not in seen:  # commands to copy stay whole
                    self.assertLessEqual(len(seen), 80, line)
            text = "\n".join(compared)
            self.assertIn("no room here for: ", text)
            self.assertRegex(text, r"best test_accuracy: \S+ \(accuracy [\d.]+ % at step \d+\)")
            wide = run("runs", "compare", "--root", root, "a-run-with-a-rather-long-name", "b").stdout
            self.assertNotIn("no room", wide)
            self.assertIn("train.patience", wide)

    def test_compared_runs_show_the_metrics_that_they_have(self):
        with tempfile.TemporaryDirectory() as at:
            rows = "".join(f"{i % 17},{3 * (i % 17) + i % 2}\n" for i in range(200))
            pathlib.Path(at, "line.csv").write_text("x,y\n" + rows)
            run("init", "line.csv", "--label", "y", cwd=at)
            text = run("train", "line.toml", "--set", "train.epochs=2", "--set", "optim.lr=1e-9,0.01", cwd=at).stdout
            header = [l for l in text.splitlines() if l.startswith("result ")][0]
            for metric in ("mae", "rmse", "r2"):
                self.assertIn(metric, header.split())
            self.assertNotIn("accuracy", header)
            self.assertIn("best val_loss: lr=0.01 (loss ", text)

    def test_no_all_reduce_is_faster_than_its_limit(self):
        for ranks, has in (("2", True), ("1", False)):
            out = run("bench", "collective", "--ranks", ranks, "--bytes", "4096,1M", "--repeats", "5", "--json").stdout
            for line in out.strip().splitlines():
                share = json.loads(line).get("limit_share")
                self.assertEqual(share is not None, has)
                self.assertLessEqual(share or 0, 1)


if __name__ == "__main__":
    unittest.main(argv=["runs", *sys.argv[3:]])
