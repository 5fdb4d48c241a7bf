"""A run whose workers are killed ends by itself with the weights of a run that nobody touched."""
import json, os, pathlib, random, re, signal, subprocess, sys, tempfile, time, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SHORT = ["--set", "data.limit=400", "--set", "data.limit_test=50", "--set", "train.batch=32", "--set", "train.shards=4"]


def words(run, *more, epochs=30):
    return [PROGRAM, "train", os.path.join(SOURCE, "recipes/demo.toml"), *SHORT, "--set", f"train.epochs={epochs}", "--run", run, "--json", *more]


def workers_of(launcher):
    try:
        return [int(pid) for pid in pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()]
    except OSError:
        return []


def generations(run):
    journal = pathlib.Path(run, "journal.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    return [line for line in lines if line["action"] == "generation"]


def lines_of(path):
    path = pathlib.Path(path)
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")] if path.exists() else []


def steps_of(run):
    metrics = pathlib.Path(run, "metrics.jsonl")
    return [json.loads(line)["step"] for line in metrics.read_text().splitlines(keepends=True) if line.endswith("\n")] if metrics.exists() else []


class Elastic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as at:
            done = subprocess.run(words(os.path.join(at, "clean")), capture_output=True, text=True, cwd=SOURCE, check=True)
        cls.clean = json.loads(done.stdout.splitlines()[-1])["weights_sha256"]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.chance = random.Random(self.id())

    def tearDown(self):
        self.folder.cleanup()

    def result(self, name, *more, **options):
        done = subprocess.run(words(os.path.join(self.folder.name, name), *more, **options), capture_output=True, text=True, cwd=SOURCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def disturbed(self, name, *more, kills, **options):
        """Kills one worker after another, until so many generations have begun, then lets the run end."""
        run = os.path.join(self.folder.name, name)
        with subprocess.Popen(words(run, *more, **options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE) as launcher:
            seen = 0
            while launcher.poll() is None and len(generations(run)) < kills:
                if len(generations(run)) == seen and (alive := workers_of(launcher.pid)) and os.path.exists(os.path.join(run, "recipe.toml")):
                    time.sleep(self.chance.uniform(0, 0.1) if seen else 0)  # any moment will do, but before the end
                    try:
                        os.kill(self.chance.choice(alive), signal.SIGKILL)
                    except ProcessLookupError:
                        continue
                    while launcher.poll() is None and len(generations(run)) == seen:
                        time.sleep(0.01)
                    seen = len(generations(run))
            out, err = launcher.communicate()
        self.assertEqual(launcher.returncode, 0, err)
        self.assertGreater(len(generations(run)), 0, err)
        self.assertIn("killed by signal 9", err)
        result = json.loads(out.splitlines()[-1])
        self.assertEqual(result["generations"], 1 + len(generations(run)))
        steps = [json.loads(line)["step"] for line in pathlib.Path(run, "metrics.jsonl").read_text().splitlines() if "train_loss" in line]
        self.assertEqual(steps, sorted(set(steps)), "every step stands once")
        return result

    def test_killed_workers_are_replaced_and_the_weights_are_those_of_an_untouched_run(self):
        for world in ("processes", "tcp"):
            with self.subTest(world=world):
                r = self.disturbed(world, "--workers", "3", "--world", world, "--elastic", kills=3)
                self.assertEqual((r["weights_sha256"], r["workers"]), (self.clean, 3))

    def test_the_others_take_over_what_a_lost_worker_did(self):
        r = self.disturbed("shrink", "--workers", "3", "--elastic=shrink", kills=2)
        self.assertEqual(r["weights_sha256"], self.clean)
        self.assertLess(r["workers"], 3)

    def test_a_split_model_goes_on_too(self):
        r = self.disturbed("zero", "--workers", "2", "--plan", "zero=3", "--elastic", kills=1)
        self.assertEqual(r["weights_sha256"], self.clean)

    def test_a_composed_system_goes_on_too(self):
        r = self.disturbed("easgd", "--workers", "2", "--system", "easgd", "--elastic", kills=1)
        self.assertGreater(r["test_accuracy"], 0.3)

    def test_workers_at_their_own_pace_make_the_same_updates_again(self):
        every_step = ["--set", "train.log_every=1", "--set", "train.eval_every_epochs=0", "--set", "data.limit=6000"]
        for world, more in (("processes", ["--system", "easgd"]), ("tcp", ["--system", "downpour"]), ("processes", ["--system", "gosgd"]), ("processes", ["--plan", "pipeline=3,schedule=ampnet"])):
            with self.subTest(world=world, more=more):
                run = os.path.join(self.folder.name, more[1].split("=")[0] + world)
                losses = lambda: [(line["step"], line["train_loss"]) for line in lines_of(os.path.join(run, "metrics.jsonl")) if "train_loss" in line]
                with subprocess.Popen(words(run, "--workers", "3", "--world", world, *more, "--elastic", *every_step, epochs=1), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE) as launcher:
                    while launcher.poll() is None and not any(step > 70 for step, _ in losses()):
                        time.sleep(0.005)
                    workers = [pid for pid in workers_of(launcher.pid) if len(os.listdir(f"/proc/{pid}/task")) > 1]  # over tcp one more has a store
                    for pid in workers:  # nothing is written between the look and the kill
                        os.kill(pid, signal.SIGSTOP)
                    before = losses()
                    os.kill(self.chance.choice(workers), signal.SIGKILL)  # and so the launcher ends the others
                    out, err = launcher.communicate()
                self.assertEqual(launcher.returncode, 0, err)
                self.assertIn("no update is lost", err)
                self.assertEqual([line for line in losses() if line[0] <= before[-1][0]][:len(before)], before, err)

    def test_asked_for_other_numbers_of_workers_it_changes_them_and_keeps_the_weights(self):
        clean = self.result("clean", epochs=150)["weights_sha256"]
        run = os.path.join(self.folder.name, "resized")
        with subprocess.Popen(words(run, "--workers", "1", "--elastic", epochs=150), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE) as launcher:
            while launcher.poll() is None and not os.path.exists(os.path.join(run, "metrics.jsonl")):
                time.sleep(0.001)
            worker, = workers_of(launcher.pid)
            os.kill(worker, signal.SIGSTOP)  # the run does not end while it is asked
            with subprocess.Popen([PROGRAM, "ctl", run, "resize", "4", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asked:
                while asked.poll() is None and not os.path.exists(os.path.join(run, "control.json")):
                    time.sleep(0.001)
                os.kill(worker, signal.SIGCONT)
                answer, refusal = asked.communicate()
            out, err = launcher.communicate()
        self.assertEqual(asked.returncode, 0, refusal)
        self.assertTrue(json.loads(answer)["taken"])
        self.assertEqual(launcher.returncode, 0, err)
        result = json.loads(out.splitlines()[-1])
        self.assertEqual((result["weights_sha256"], result["workers"]), (clean, 4), err)
        self.assertIn("as asked: 4 workers", generations(run)[0]["because"])

    def test_stages_change_it_as_a_file_says_and_the_weights_stay(self):
        stages = os.path.join(self.folder.name, "mine.toml")
        pathlib.Path(stages).write_text('title = "mine"\nprogram = "all: more and more"\n[[stage]]\nat_step = 20\nworkers = 3\nplan = "zero=1"\n[[stage]]\nat_epoch = 5\nplan = "none"\n')
        done = subprocess.run(words(os.path.join(self.folder.name, "staged"), "--stages", stages), capture_output=True, text=True, cwd=SOURCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((result["weights_sha256"], result["workers"], result["generations"]), (self.clean, 3, 4), done.stderr)
        for text in ("stages mine: mine", "    all: more and more", "after step 20: 3 workers", "after step 21: plan zero=1"):
            self.assertIn(text, done.stderr)
        again = self.result("again", "--workers", "1", "--elastic", "--replay", os.path.join(self.folder.name, "staged"))
        self.assertEqual((again["weights_sha256"], again["generations"]), (self.clean, 4))

    def test_published_stages_can_be_trained(self):
        for name, more in (("flexps", ["--workers", "1"]), ("proteus", ["--workers", "2", "--system", "downpour", "--set", "exchange.servers=1"])):
            run = os.path.join(self.folder.name, name)
            done = subprocess.run(words(run, "--stages", name, *more, epochs=6), capture_output=True, text=True, cwd=SOURCE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((json.loads(done.stdout.splitlines()[-1])["workers"], len(generations(run))), (2, 3), done.stderr)
            self.assertIn(f"stages {name}: ", done.stderr)

    def test_as_many_servers_as_were_the_quickest(self):
        run = os.path.join(self.folder.name, "dolphin")
        train = ["--workers", "3", "--system", "downpour"]
        done = subprocess.run(words(run, "--stages", "dolphin", *train, epochs=30), capture_output=True, text=True, cwd=SOURCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        *tried, chosen = generations(run)
        self.assertEqual([(line["step"], line["because"].split(":")[0]) for line in tried], [(20, "as asked, servers 1"), (80, "as asked, servers 2"), (140, "as asked, servers 3")], done.stderr)
        seconds = dict(re.findall(r"(\d): ([\d.]+) ms a step", chosen["because"]))
        self.assertEqual((chosen["step"], set(seconds)), (200, {"1", "2", "3"}), done.stderr)
        self.assertEqual(float(seconds[chosen["servers"]]), min(map(float, seconds.values())))
        self.assertIn(f"servers = {chosen['servers']}", pathlib.Path(run, "recipe.toml").read_text())
        again = os.path.join(self.folder.name, "again")
        self.result("again", *train, "--elastic", "--replay", run)
        self.assertIn(f"as asked, servers {chosen['servers']}", generations(again)[-1]["because"])

    def test_what_is_kept_is_a_choice(self):
        for keep, says in (("buddy", "the open step is done again"), ("replay", "kept after every 50 steps"), ("checkpoint", "since the last checkpoint are done again, with the same bits")):
            for attempt in range(20):  # on a busy machine a run may end before it is disturbed
                run = os.path.join(self.folder.name, f"{keep}-{attempt}")
                with subprocess.Popen(words(run, "--workers", "2", "--elastic", "--keep", keep, "--set", "train.checkpoint_every_steps=60"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE) as launcher:
                    while launcher.poll() is None and not any(step > 70 for step in steps_of(run)):
                        time.sleep(0.005)
                    if alive := workers_of(launcher.pid):
                        os.kill(alive[0], signal.SIGKILL)
                    out, err = launcher.communicate()
                self.assertEqual(launcher.returncode, 0, err)
                if "killed by signal" in err:
                    break
            self.assertIn(says, err)
            self.assertEqual(json.loads(out.splitlines()[-1])["weights_sha256"], self.clean, err)

    def test_a_worker_that_stands_still_is_replaced(self):
        run = os.path.join(self.folder.name, "stopped")
        with subprocess.Popen(words(run, "--workers", "2", "--elastic", "--stopped-after", "2", epochs=200), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE) as launcher:
            while launcher.poll() is None and not os.path.exists(os.path.join(run, "logs/rank_1.ring")):
                time.sleep(0.01)
            os.kill(workers_of(launcher.pid)[1], signal.SIGSTOP)
            while launcher.poll() is None and not generations(run):
                time.sleep(0.05)
            launcher.terminate()
            out, err = launcher.communicate()
        self.assertIn("rank 1", err)
        self.assertIn("it is ended, and replaced", err)
        self.assertEqual(len(generations(run)), 1, err)

    def test_restarts_have_a_limit_if_one_is_given(self):
        run = os.path.join(self.folder.name, "limited")
        with subprocess.Popen(words(run, "--workers", "2", "--max-restarts", "0", epochs=2000), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE) as launcher:
            while launcher.poll() is None and not os.path.exists(os.path.join(run, "metrics.jsonl")):
                time.sleep(0.01)
            os.kill(workers_of(launcher.pid)[0], signal.SIGKILL)
            out, err = launcher.communicate()
        self.assertEqual(launcher.returncode, 1, err)
        self.assertIn("as often as --max-restarts allows", err)

    def test_what_cannot_be_is_refused(self):
        for more, text in ((["--elastic=never"], "--elastic or"), (["--elastic", "--world", "threads", "--workers", "2"], "processes of this machine"),
                           (["--elastic", "--trace"], "--trace"), (["--elastic=shrink", "--workers", "2", "--plan", "zero=3"], "splits the model"),
                           (["--keep", "buddy"], "say --elastic"), (["--elastic", "--keep", "all"], "buddy, replay or checkpoint"), (["--stages", "flexpss"], "did you mean 'flexps'"),
                           (["--standalone", "--nnodes", "2"], "--standalone")):
            done = subprocess.run(words(os.path.join(self.folder.name, "no"), *more), capture_output=True, text=True, cwd=SOURCE)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text.split(" or")[0], done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder.name, "no")))
        self.result("ended", epochs=1)
        for more, text in ((["resize", "many"], "number of workers"), (["jump"], "nothing that a run can be asked"), (["stop"], "nobody trains in it")):
            done = subprocess.run([PROGRAM, "ctl", os.path.join(self.folder.name, "ended"), *more], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
