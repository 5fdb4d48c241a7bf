"""Machines that join and leave a job while it runs, or are killed: the weights are those of one process that nobody touched.

Each machine is a launcher of its own on this one. With etcd-server (tools/setup cluster) the last test also runs: three etcds,
one of them killed."""
import json, os, pathlib, shutil, signal, socket, subprocess, sys, tempfile, time, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SHORT = ["--set", "data.limit=400", "--set", "data.limit_test=50", "--set", "train.batch=32", "--set", "train.shards=4", "--set", "train.eval_every_epochs=500", "--cores", "1"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def words(run, *more, epochs):
    return [PROGRAM, "train", os.path.join(SOURCE, "recipes/demo.toml"), *SHORT, "--set", f"train.epochs={epochs}", "--run", run, "--json", *map(str, more)]


def workers_of(launcher):
    """The ranks of a launcher: those of its children that have threads. The process that holds its store has none."""
    try:
        pids = [int(pid) for pid in pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()]
        return [pid for pid in pids if len(os.listdir(f"/proc/{pid}/task")) > 1]
    except OSError:
        return []


class Nodes(unittest.TestCase):
    EPOCHS = 1000

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as at:
            done = subprocess.run(words(os.path.join(at, "clean"), epochs=cls.EPOCHS), capture_output=True, text=True, cwd=SOURCE, check=True)
        cls.clean = json.loads(done.stdout.splitlines()[-1])["weights_sha256"]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.secret = os.path.join(self.folder.name, "secret")
        subprocess.run([PROGRAM, "secret", self.secret], check=True, capture_output=True)
        self.nodes = []
        self.addCleanup(self.end)

    def end(self):
        for node in self.nodes:
            if node.poll() is None:
                node.kill()
            node.communicate()

    def job(self, *more):
        return ["--rdzv-endpoint", self.endpoint, "--secret-file", self.secret, *more]

    def node(self, *more, nodes="1:3"):
        node = subprocess.Popen(words(os.path.join(self.folder.name, "run"), "--nnodes", nodes, *self.job(*more), epochs=self.EPOCHS),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE)
        self.nodes.append(node)
        return node

    def status(self, *more):
        done = subprocess.run([PROGRAM, "status", self.endpoint, "--secret-file", self.secret, "--json", *more], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def wait(self, condition, what, *more):
        while not condition(self.status(*more) or {"generation": 0, "nodes": [], "state": ""}):
            if all(n.poll() is not None for n in self.nodes):
                self.fail(f"{what}: " + "".join(n.communicate()[1] for n in self.nodes))
            time.sleep(0.05)

    def steps(self):
        metrics = pathlib.Path(self.folder.name, "run/metrics.jsonl")
        return len(metrics.read_text().splitlines()) if metrics.exists() else 0

    def wait_for_steps(self, more=5):
        before = self.steps()
        while self.steps() < before + more:
            self.assertTrue(any(n.poll() is None for n in self.nodes), "the job ended early")
            time.sleep(0.02)

    def expect_clean_end(self, survivors):
        results = []
        for node in survivors:
            out, err = node.communicate()
            self.assertEqual(node.returncode, 0, err)
            results += [json.loads(line) for line in out.splitlines() if "weights_sha256" in line]
        self.assertEqual([r["weights_sha256"] for r in results], [self.clean], "one machine has rank 0 at the end")
        steps = [json.loads(line)["step"] for line in pathlib.Path(self.folder.name, "run/metrics.jsonl").read_text().splitlines() if "train_loss" in line]
        self.assertEqual(steps, sorted(set(steps)), "every step stands once")

    def come_and_go(self, *backend):
        first = self.node("--workers", "2", *backend)
        self.wait(lambda s: s["state"] == "training", "the first machine trains", *backend)
        self.wait_for_steps()
        second = self.node(*backend)
        self.wait(lambda s: len([n for n in s["nodes"] if n["state"] == "training"]) == 2, "a second has joined", *backend)
        third = subprocess.Popen([PROGRAM, "join", self.endpoint, "--secret-file", self.secret, "--cores", "1", "--json", *backend],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE)
        self.nodes.append(third)
        self.wait(lambda s: len([n for n in s["nodes"] if n["state"] == "training"]) == 3, "a third has joined, without a recipe", *backend)
        self.wait_for_steps()
        second.kill()  # with its workers
        self.wait(lambda s: len([n for n in s["nodes"] if n["state"] == "training"]) == 2, "the others go on", *backend)
        self.wait_for_steps()
        generation = self.status(*backend)["generation"]
        os.kill(workers_of(first.pid)[-1], signal.SIGKILL)  # a worker alone
        # Both: on a busy machine the one whose worker was killed may be late, left out, and back a generation later.
        self.wait(lambda s: s["generation"] > generation and [n["state"] for n in s["nodes"]] == ["training"] * 2, "its worker is replaced", *backend)
        third.send_signal(signal.SIGTERM)  # preemption: it leaves
        self.assertEqual(third.wait(), 0, "leaving is no failure")
        self.assertIn("has left the job", third.stderr.read())
        return first

    def test_machines_come_and_go(self):
        self.endpoint = f"127.0.0.1:{free_port()}"
        first = self.come_and_go()
        self.expect_clean_end([first])

    def test_machines_check_each_other_and_the_wrong_one_leaves_the_second_time(self):
        self.endpoint = f"127.0.0.1:{free_port()}"
        check = ["--check-replicas", "5", "--flip-bit", "rank=1,step=7", "--flip-bit", "rank=1,step=23"]
        first = self.node(*check, nodes="1:2")
        self.wait(lambda s: len(s["nodes"]) == 1, "the first machine is there, and has the first rank")
        other = self.node("--check-replicas", "4", nodes="1:2")
        self.assertEqual(other.wait(), 2)
        self.assertIn("--check-replicas 5", other.stderr.read())
        second = self.node(*check, nodes="1:2")
        self.assertEqual(second.wait(), 0, "it has left")
        err = second.stderr.read()
        self.assertIn("rank 1 was wrong for the second time and is left out", err)
        self.assertIn("has left the job", err)
        self.expect_clean_end([first])
        journal = [json.loads(line) for line in pathlib.Path(self.folder.name, "run/journal.jsonl").read_text().splitlines()]
        self.assertEqual([(j["rank"], j["times"]) for j in journal if j["action"] == "wrong"], [(1, 1), (1, 2)])

    def test_machines_follow_stages(self):
        self.endpoint = f"127.0.0.1:{free_port()}"
        stages = os.path.join(self.folder.name, "mine.toml")
        pathlib.Path(stages).write_text('[[stage]]\nat_step = 20\nworkers = 1\n[[stage]]\nat_step = 400\nworkers = 2\n[[stage]]\nat_step = 800\nsystem = "easgd"\n')
        first = self.node("--stages", stages, "--set", "train.epochs=100", nodes="1:2")
        self.wait(lambda s: len(s["nodes"]) == 1, "the first machine is there")
        other = self.node("--set", "train.epochs=100", nodes="1:2")
        self.assertEqual(other.wait(), 2)
        self.assertIn("other --stages", other.stderr.read())
        second = subprocess.Popen([PROGRAM, "join", self.endpoint, "--secret-file", self.secret, "--cores", "1", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE)
        self.nodes = [first, second]
        ends = [n.communicate() for n in self.nodes]
        self.assertEqual([n.returncode for n in self.nodes], [0, 0], ends)
        result, = [json.loads(line) for out, _ in ends for line in out.splitlines() if "weights_sha256" in line]
        journal = [json.loads(line) for line in pathlib.Path(self.folder.name, "run/journal.jsonl").read_text().splitlines()]
        begun = [(j["step"], j["workers"]) for j in journal if j["action"] == "generation"]
        self.assertEqual([workers for step, workers in begun if 20 <= step < 400], [1], begun)
        # On a busy machine one may be late, left out, and back a generation later.
        self.assertLessEqual({400, 800}, {step for step, _ in begun}, begun)
        self.assertEqual(result["workers"], 2)
        self.assertIn('composed_from = "easgd"', pathlib.Path(self.folder.name, "run/recipe.toml").read_text())

    def test_what_is_none_is_refused(self):
        self.endpoint = f"127.0.0.1:{free_port()}"
        done = subprocess.run([PROGRAM, "status", self.endpoint, "--secret-file", self.secret], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        first = self.node()
        self.wait(lambda s: s["state"] == "training", "it trains")
        other = subprocess.run([*words(os.path.join(self.folder.name, "other"), "--nnodes", "1:3", *self.job(), epochs=3)], capture_output=True, text=True, cwd=SOURCE)
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertIn("another recipe", other.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "other")))
        stranger = os.path.join(self.folder.name, "stranger")
        subprocess.run([PROGRAM, "secret", stranger], check=True, capture_output=True)
        done = subprocess.run([PROGRAM, "leave", self.endpoint, "--secret-file", stranger], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIsNone(first.poll())

    @unittest.skipUnless(shutil.which("etcd"), "etcd-server is not installed (tools/setup cluster)")
    def test_machines_come_and_go_with_etcd_of_which_one_is_killed(self):
        clients, peers = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
        cluster = ",".join(f"e{i}=http://127.0.0.1:{p}" for i, p in enumerate(peers))
        etcds = [subprocess.Popen(["etcd", "--name", f"e{i}", "--data-dir", os.path.join(self.folder.name, f"etcd{i}"), "--listen-client-urls", f"http://127.0.0.1:{clients[i]}",
                                   "--advertise-client-urls", f"http://127.0.0.1:{clients[i]}", "--listen-peer-urls", f"http://127.0.0.1:{peers[i]}",
                                   "--initial-advertise-peer-urls", f"http://127.0.0.1:{peers[i]}", "--initial-cluster", cluster, "--log-level", "error"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for i in range(3)]
        self.addCleanup(lambda: [(e.kill(), e.wait()) for e in etcds])
        self.endpoint = ",".join(f"127.0.0.1:{p}" for p in clients)
        backend = ["--rdzv-backend", "etcd"]
        first = self.node("--workers", "2", *backend)
        self.wait(lambda s: s["state"] == "training", "the first machine trains", *backend)
        etcds[0].kill()
        second = self.node(*backend)
        self.wait(lambda s: len([n for n in s["nodes"] if n["state"] == "training"]) == 2, "a second has joined", *backend)
        self.wait_for_steps()
        first.kill()  # the machine that began, and had rank 0
        self.wait(lambda s: [n["state"] for n in s["nodes"]] == ["training"], "the other goes on alone", *backend)
        self.expect_clean_end([second])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
