"""Faults of ten kinds are put into runs: is the cause named, with the right rank, within seconds?

    causes_test.py PROGRAM SOURCE [ROUNDS]

With ROUNDS every kind is tried so often, and a table is printed (bench/faults --causes does that)."""
import json, os, pathlib, shutil, signal, struct, subprocess, sys, tempfile, time, unittest, zlib

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
LONG = ["--set", "train.epochs=100000", "--set", "train.batch=36", "--set", "train.shards=6", "--set", "train.eval_every_epochs=100000", "--cores", "1"]
LIMIT = 15 if ROUNDS else 600  # seconds; a test that is no measurement waits as long as a busy machine needs

# Slows down system calls of a program that knows nothing of it.
SLOW_CALLS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int hits(int fd, const char* what) {
  char link[64], path[512];
  const char* rank = getenv("SLOW_WHAT");
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0 || !rank) return 0;
  path[n] = 0;
  return strstr(path, what) && strstr(path, rank);
}
int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "fsync");
  if (hits(fd, "checkpoints")) usleep(8000000);
  return real(fd);
}
int fdatasync(int fd) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
  if (hits(fd, "checkpoints")) usleep(8000000);
  return real(fd);
}
ssize_t pread64(int fd, void* to, size_t n, off_t at) {
  static ssize_t (*real)(int, void*, size_t, off_t);
  if (!real) real = dlsym(RTLD_NEXT, "pread64");
  if (hits(fd, ".png")) usleep(40000);
  return real(fd, to, n, at);
}
ssize_t pread(int fd, void* to, size_t n, off_t at) { return pread64(fd, to, n, at); }
"""


def children(pid):
    try:
        return [int(c) for c in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class Run:
    """A run of three workers on the digits that goes on for ever, in a folder of its own."""

    def __init__(self, folder, name, *more, environment=None, recipe=None):
        self.run = os.path.join(folder, name)
        self.errors = open(os.path.join(folder, name + ".err"), "w+")
        words = [PROGRAM, "train", recipe or os.path.join(SOURCE, "recipes/demo.toml"), *LONG, "--run", self.run, "--workers", "3", "--elastic", *more]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=self.errors, cwd=SOURCE, env=dict(os.environ, **(environment or {})))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def said(self):
        return pathlib.Path(self.errors.name).read_text()

    def status(self):
        done = subprocess.run([PROGRAM, "status", self.run, "--json"], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def wait_for_steps(self, least=30):
        until = time.time() + max(LIMIT, 60)
        while time.time() < until:
            assert self.process.poll() is None, self.said()
            status = self.status()
            if status and all(r["step"] >= least for r in status["ranks"]) and len(status["ranks"]) == 3:
                return
            time.sleep(0.1)
        raise AssertionError("it does not train: " + self.said())

    def process_of(self, rank):
        return next(r["process"] for r in self.status()["ranks"] if r["rank"] == rank)

    def incidents(self):
        path = pathlib.Path(self.run, "incidents.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def first_incident(self, causes, since, rank=None):
        """The seconds until an incident of these causes was written down, and the incident. On a busy machine other ranks
        may have one of their own before; only a measurement counts that as an error."""
        while time.time() < since + LIMIT:
            for i in self.incidents():
                if i["cause"] in causes and i["time"] > since - 1 and (ROUNDS or rank is None or i["rank"] == rank):
                    return time.time() - since, i
            time.sleep(0.05)
        raise AssertionError(f"none of {causes} within {LIMIT} s; {self.incidents()} {self.said()}")


class Causes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.slow_calls = os.path.join(cls.folder.name, "slow_calls.so")
        compiler = shutil.which("cc") or shutil.which("gcc")
        source = os.path.join(cls.folder.name, "slow_calls.c")
        pathlib.Path(source).write_text(SLOW_CALLS)
        cls.can_slow = compiler and subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", cls.slow_calls, source, "-ldl"], capture_output=True).returncode == 0
        cls.number = 0

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def start(self, *more, **options):
        Causes.number += 1
        return Run(self.folder.name, f"run{Causes.number}", *more, **options)

    def signalled(self, number, rank, causes):
        with self.start() as run:
            run.wait_for_steps()
            before = time.time()
            os.kill(run.process_of(rank), number)
            took, incident = run.first_incident(causes, before)
            self.assertEqual(incident["rank"], rank, incident)
            self.assertIn("step", incident["operation"])
            return took

    def killed(self, rank=1):
        return self.signalled(signal.SIGKILL, rank, {"died"})

    def crashed(self, rank=2):
        return self.signalled(signal.SIGSEGV, rank, {"died"})

    def aborted(self, rank=0):
        return self.signalled(signal.SIGABRT, rank, {"died"})

    def stopped(self, rank=1):
        return self.signalled(signal.SIGSTOP, rank, {"stopped"})

    def slow_link(self, rank=0):
        with self.start("--link", "3mbit") as run:
            run.wait_for_steps(4)
            return run.first_incident({"slow link"}, time.time())[0]

    def slow_worker(self, rank=1):
        with self.start("--straggler", f"rank={rank},factor=12") as run:
            run.wait_for_steps(4)
            took, incident = run.first_incident({"slow", "other program"}, time.time(), rank)
            self.assertEqual(incident["rank"], rank, incident)
            return took

    def slow_disk(self, rank=0):
        if not self.can_slow:
            self.skipTest("no compiler")
        with self.start("--set", "train.checkpoint_every_steps=40", environment={"LD_PRELOAD": self.slow_calls, "SLOW_WHAT": "checkpoints"}) as run:
            took, incident = run.first_incident({"slow disk"}, time.time(), 0)
            self.assertEqual(incident["rank"], 0, incident)
            return took

    def input_bound(self, rank=0):
        if not self.can_slow:
            self.skipTest("no compiler")
        with self.start("--set", "train.batch=12", environment={"LD_PRELOAD": self.slow_calls, "SLOW_WHAT": "pictures"}, recipe=self.pictures()) as run:
            return run.first_incident({"input-bound"}, time.time())[0]

    def pictures(self):
        """A recipe for a folder of pictures, which are read anew in every epoch."""
        recipe = os.path.join(self.folder.name, "pictures.toml")
        if os.path.exists(recipe):
            return recipe
        for split, count in (("train", 60), ("test", 6)):
            for kind in ("a", "b"):
                folder = pathlib.Path(self.folder.name, "pictures", split, kind)
                folder.mkdir(parents=True)
                for n in range(count):
                    (folder / f"{n}.png").write_bytes(png(12, n + 100 * (kind == "a")))
        done = subprocess.run([PROGRAM, "init", "pictures"], cwd=self.folder.name, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return recipe

    def flipped_bit(self, rank=1):
        with self.start("--check-replicas", "5", "--flip-bit", f"rank={rank},step=12") as run:
            before = time.time()
            while time.time() < before + LIMIT:
                journal = pathlib.Path(run.run, "journal.jsonl")
                for line in journal.read_text().splitlines() if journal.exists() else []:
                    if (change := json.loads(line))["action"] == "wrong":
                        self.assertEqual(change["rank"], rank)
                        return time.time() - before
                time.sleep(0.05)
            self.fail("nobody was named: " + run.said())

    def no_number(self, rank=1):
        with self.start("--check-replicas", "5", "--flip-bit", f"rank={rank},step=12,of=nan") as run:
            before = time.time()
            self.assertEqual(run.process.wait(timeout=LIMIT), 2)
            self.assertIn(f"rank {rank}: step 11: the loss is a number, but the gradient", run.said())
            return time.time() - before

    def test_the_last_events_are_there_when_all_are_gone(self):
        with self.start() as run:
            run.wait_for_steps()
            workers = children(run.process.pid)
            run.process.kill()  # its workers end with it
            for pid in workers:
                while os.path.exists(f"/proc/{pid}") and pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    time.sleep(0.05)
            done = subprocess.run([PROGRAM, "doctor", run.run, "--json"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            told = json.loads(done.stdout)
            self.assertEqual(told["wrong"]["cause"], "died")
            self.assertEqual([r["state"] for r in told["ranks"]], ["gone"] * 3)
            self.assertTrue(all(len(r["events"]) > 10 for r in told["ranks"]))
            for words in (["status", run.run], ["doctor", run.run]):
                done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("died", done.stdout)

    def test_what_is_no_run_is_refused(self):
        for verb in ("status", "doctor"):
            done = subprocess.run([PROGRAM, verb, os.path.join(self.folder.name, "nothing")], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)


KINDS = ["killed", "crashed", "aborted", "stopped", "slow_link", "slow_worker", "slow_disk", "input_bound", "flipped_bit", "no_number"]
for kind in KINDS:
    def test(self, kind=kind):
        getattr(self, kind)()
    setattr(Causes, f"test_{kind}", test)


def png(size, seed):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((x * y + seed) % 256 for x in range(size)) for y in range(size))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def table():
    """Every kind ROUNDS times: how often it was named right, and after how many seconds."""
    Causes.setUpClass()
    all_right = 0
    print(f"{'fault':12} {'named right':>12} {'median s':>9} {'longest s':>10}")
    for kind in KINDS:
        took = []
        for number in range(ROUNDS):
            try:
                took.append(getattr(Causes(f"test_{kind}"), kind)(rank=number % 3))
            except AssertionError as problem:
                print(f"  {kind} {number}: {str(problem)[:300]}", file=sys.stderr)
        all_right += len(took)
        took.sort()
        print(f"{kind:12} {len(took):5} of {ROUNDS:3} {took[len(took) // 2] if took else 0:9.2f} {took[-1] if took else 0:10.2f}", flush=True)
    print(f"{all_right} of {len(KINDS) * ROUNDS}")
    Causes.tearDownClass()


if __name__ == "__main__":
    if ROUNDS:
        table()
    else:
        unittest.main(argv=sys.argv[:1])
