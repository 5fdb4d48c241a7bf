"""The two programs that answer over HTTP, `echelon board` and `echelon serve`, under hostile connections."""
import http.client
import json
import os
import select
import signal
import subprocess
import threading
import time

from network import addresses, descriptors
from process import stop
from strangers import A_LOT, besiege, tls_hello
from table import Verdict

CONNECTIONS, SLOT = 3400, 700     # of each try; more at once than may wait for a request (512)
CLOSED_SECONDS = 5.0              # without a request; a connection with one is closed as long after its answer
ANSWERED_SECONDS = 2.0            # of an honest client beside them, on two cores that others use too
MOST_DESCRIPTORS, MOST_GROWTH_MIB = 1000, 300

PAGE = "board"  # `echelon board`
GET = b"GET / HTTP/1.1\r\nHost: %s\r\n"

BEHAVIOURS = {
    "silent": lambda dice: b"",
    "garbage": lambda dice: dice.randbytes(300),
    "zeros": lambda dice: bytes(4096),
    "half a request line": lambda dice: GET[:dice.randrange(1, 14)],
    "half a head": lambda dice: GET + b"A: b\r\n" * dice.randrange(50),
    "one byte a second": lambda dice: GET,
    "one byte a second of a body": lambda dice: b"x" * 100,
    "a body that does not come": lambda dice: GET.replace(b"GET", b"POST") + b"Content-Length: 60000\r\n\r\n" + b"{" * 100,
    "a body of 2^63": lambda dice: GET.replace(b"GET", b"POST") + b"Content-Length: 9223372036854775808\r\n\r\n",
    "a body of -1": lambda dice: GET.replace(b"GET", b"POST") + b"Content-Length: -1\r\n\r\n",
    "a line without end": lambda dice: A_LOT,
    "headers without end": lambda dice: GET + b"A: b\r\n" * 200000,
    "a long header": lambda dice: GET + b"A: " + b"b" * 100000 + b"\r\n\r\n",
    "chunks without end": lambda dice: GET.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n" +
                                       b"ffffffff\r\n" + bytes(100000),
    "tls": lambda dice: tls_hello(),
    "a path out of the page": lambda dice: b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "another host": lambda dice: b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "json that is none": lambda dice: b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n" +
                                      b"[" * 2000,
    "reads nothing": lambda dice: b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300,
}


class Listener:
    """`echelon board` or `echelon serve` in the background."""

    def __init__(self, program, log, *words):
        self.err = open(log, "w+b")
        self.words = [*words, "--port", 0, "--json"]
        self.child = program.start(*self.words, out=subprocess.PIPE, err=self.err)
        ready = select.select([self.child.stdout], [], [], 30)[0]
        self.port = json.loads(self.child.stdout.readline())["port"] if ready else 0

    def command(self):
        return "echelon " + " ".join(map(str, self.words))

    def answers(self, path):
        """Seconds until an honest client has its answer; None if there is none."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            good = connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            good = False
        finally:
            connection.close()
        return time.monotonic() - began if good else None

    def memory_mib(self):
        """The most memory that it has had."""
        with open(f"/proc/{self.child.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

    def end(self):
        """Exit code and seconds after SIGTERM."""
        began = time.monotonic()
        os.kill(self.child.pid, signal.SIGTERM)
        try:
            code = self.child.wait(10)
        except subprocess.TimeoutExpired:
            code = None
        return code, time.monotonic() - began

    def close(self):
        stop(self.child)
        self.child.stdout.close()
        self.err.close()


class Honest(threading.Thread):
    """A client that asks again and again; `slowest` answer in seconds, `failed` how many there were not."""

    def __init__(self, listener, path):
        super().__init__()
        self.listener, self.path, self.over = listener, path, threading.Event()
        self.asked, self.failed, self.slowest = 0, 0, 0.0

    def run(self):
        while not self.over.wait(0.05):
            seconds = self.listener.answers(self.path)
            self.asked += 1
            self.failed += seconds is None
            self.slowest = max(self.slowest, seconds or 0.0)

    def stop(self):
        self.over.set()
        self.join()


def attack(name, listener, path, dice, count):
    """Verdicts; `count(n)` is told how many connections were made."""
    command = listener.command()
    if not listener.port:
        yield Verdict(f"{name}: listens", 1, False, "no port within 30 s", command)
        return
    where = addresses(listener.child.pid)
    yield Verdict(f"{name}: listens on loopback only", 1, where == {"127.0.0.1"}, f"it listens on {sorted(where)}", command)
    listener.answers(path)
    before, honest = listener.memory_mib(), Honest(listener, path)
    honest.start()
    most, over = [0], threading.Event()

    def watch():
        while not over.wait(0.05):
            most[0] = max(most[0], len(descriptors(listener.child.pid)))
    watcher = threading.Thread(target=watch)
    watcher.start()
    limit = 2 * CLOSED_SECONDS + ANSWERED_SECONDS
    results = besiege([listener.port], CONNECTIONS, limit + 0.5, dice, kinds=BEHAVIOURS, slot=SLOT)
    over.set()
    watcher.join()
    honest.stop()
    count(len(results))
    late = [(behaviour, seconds) for behaviour, seconds, by_them in results if not by_them]
    yield Verdict(f"{name}: whoever asks nothing is closed within 10 s", 1, not late, f"still connected: {late[:3]}", command)
    yield Verdict(f"{name}: an honest client is answered beside them", 1,
                  honest.asked > 0 and honest.failed == 0 and honest.slowest < ANSWERED_SECONDS,
                  f"{honest.failed} of {honest.asked} not answered, the slowest after {honest.slowest:.1f} s", command)
    yield Verdict(f"{name}: descriptors are bounded", 1, most[0] < MOST_DESCRIPTORS, f"{most[0]} descriptors", command)
    alive = listener.child.poll() is None
    grown = listener.memory_mib() - before if alive else 0
    yield Verdict(f"{name}: memory is bounded", 6, alive and grown < MOST_GROWTH_MIB, f"{grown:.0f} MiB more; alive: {alive}", command)
    code, seconds = listener.end()
    yield Verdict(f"{name}: SIGTERM ends it within 3 s", 4, code == 0 and seconds < 3 + 0.7, f"exit {code} after {seconds:.1f} s", command)
