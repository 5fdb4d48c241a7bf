"""Hostile connections to every port of a job over TCP, and to the two programs that answer over HTTP."""
import os
import signal
import statistics
import struct
import threading
import time

import http_listeners
from jobs import Job, result, settings
from network import children, descriptors, free_port, listeners, own_namespace, processes, socket_memory_mib
from strangers import besiege, rogue
from table import Verdict

CLOSED_SECONDS, SLACK = 2.0, 0.7  # two cores may be busy with other things
MOST_DESCRIPTORS, MOST_SOCKET_MIB = 200, 64
CONNECTIONS, FLOOD = 3400, 6000   # of each try: three tries make ten thousand at each port in each phase
CONNECTING_SECONDS = 12           # of the twenty that ranks have to connect
PARKED = 40                       # connections that send megabytes to nobody
PAIRS = 5                         # jobs with and without strangers, in turns
LONG = 30                         # epochs of a job that trains for some seconds


class Ports:
    """Hostile connections to every port: of a TCP job, while it forms, connects and trains, of `board` and of `serve`."""
    name, full_tries = "ports", 36

    def __init__(self, program, folder, table):
        self.program, self.folder, self.table = program, folder, table
        if not own_namespace():
            table.note("ports: no network namespace of our own (that needs root): on the machine's loopback")
        self.secret = os.path.join(folder, "job.secret")
        program.run("secret", self.secret, seconds=20)
        with open(self.secret) as file:
            self.key = bytes.fromhex(file.read().strip())
        self.clean, self.count, self.jobs = {}, 0, []
        self.scenarios = [self._while_training, self._at_the_rendezvous, self._wrong_secret, self._other_job, self._tls_and_plain,
                          self._while_connecting, self._parked, self._rogues, self._weak_secrets,
                          self._page, self._serve, self._slower]

    def close(self):
        for job in self.jobs:
            job.close()
        if self.count:
            self.table.note(f"ports: {self.count} hostile connections")

    def attempt(self, number, dice):
        self.number = number
        yield from self.scenarios[number % len(self.scenarios)](dice)
        for job in self.jobs:
            job.close()
        self.jobs = []

    def _job(self, name, *words, **more):
        job = Job(self.program, self.folder, f"{self.number}-{name}", *words, **more)
        self.jobs.append(job)
        return job

    def _reference(self, epochs=3):
        """(hash, seconds) of three workers that nobody disturbs."""
        if epochs not in self.clean:
            job = Job(self.program, self.folder, f"clean-{epochs}", "--world", "tcp", "--workers", 3, settings=settings(epochs))
            done = job.finish(120)
            said = result(done)
            if not said:
                raise SystemExit(f"the job to be attacked does not work: {done.command()}\n{done.err}")
            self.clean[epochs] = said["weights_sha256"], said["seconds"]
        return self.clean[epochs]

    def _siege(self, ports, dice, **more):
        results = besiege(ports, CONNECTIONS, CLOSED_SECONDS + SLACK + 0.3, dice, **more)
        self.count += len(results)
        return results

    def _same_hash(self, test, outcome, epochs=3):
        held = outcome.code == 0 and result(outcome).get("weights_sha256") == self._reference(epochs)[0]
        return Verdict(test, 1, held, f"not the weights of the undisturbed run: {outcome.brief()}", outcome.command())

    def _in_time(self, phase, results, command):
        for behaviour, seconds, by_them in results:
            held = by_them and seconds <= CLOSED_SECONDS + SLACK
            yield Verdict(f"{phase}: strangers are closed within 2 s", 1, held,
                          f"'{behaviour}' was still connected after {seconds:.1f} s", command)

    def _while_training(self, dice):
        """No port is open; whoever knocks at one that was open is refused, and the weights do not change."""
        job = self._job("training", "--world", "tcp", "--workers", 3, settings=settings(LONG))
        early = {}
        job.wait_until(lambda: early.update(listeners(job.pid)) or job.training(), 30)
        open_ = listeners(job.pid)
        command = "echelon " + " ".join(map(str, job.words))
        yield Verdict("training: no port is open", 1, not open_, f"ports {sorted(open_)} are open during training", command)
        ports = sorted(early) or [free_port()]
        results = besiege(ports, FLOOD, CLOSED_SECONDS, dice, until=lambda: not job.running(), leave_after=0.2)
        self.count += len(results)
        outcome = job.finish(60)
        yield self._same_hash("training: the weights are those of an undisturbed run", outcome, LONG)

    def _slower(self, dice):
        """The same job with and without strangers, in turns: what 10,000 of them cost it. Judged by its processor time, since
        the strangers, and whoever else uses this machine, take their part of the cores."""
        self._reference(LONG)
        cpu, wall = [], []
        for turn in range(PAIRS):
            outcomes = []
            for disturbed in (False, True):
                job = self._job(f"turn-{turn}-{disturbed}", "--world", "tcp", "--workers", 3, settings=settings(LONG))
                early = {}
                job.wait_until(lambda: early.update(listeners(job.pid)) or job.training(), 30)
                if disturbed:
                    results = besiege(sorted(early) or [free_port()], -(-10000 // PAIRS), CLOSED_SECONDS, dice, leave_after=0.2)
                    self.count += len(results)
                outcomes.append(job.finish(120))
            if all(result(outcome) for outcome in outcomes):
                cpu.append(outcomes[1].cpu_seconds / outcomes[0].cpu_seconds)
                wall.append(result(outcomes[1])["seconds"] / result(outcomes[0])["seconds"])
        if not cpu:
            yield Verdict("training: less than 10 % slower under 10,000 connections", 1, False, "no turn ended", "")
            return
        said = " ".join(f"{ratio:.2f}" for ratio in cpu)
        self.table.note(f"ports: 10,000 connections during training, {PAIRS} turns: {statistics.median(cpu):.3f} of the processor "
                        f"time without ({said}); {statistics.median(wall):.2f} of the seconds, strangers and other load included")
        yield Verdict("training: less than 10 % slower under 10,000 connections", 1, statistics.median(cpu) < 1.1, said, "")

    def _parked(self, dice):
        """Connections that send as much as they can hold no memory of the kernel during training."""
        job = self._job("parked", "--world", "tcp", "--workers", 3, settings=settings(LONG))
        early = {}
        job.wait_until(lambda: early.update(listeners(job.pid)) or job.training(), 30)
        before, most = socket_memory_mib(), 0.0
        siege = threading.Thread(target=besiege, args=(sorted(early) or [free_port()], PARKED, 1.5, dice),
                                 kwargs={"behaviours": ["a lot"]})
        siege.start()
        while siege.is_alive():
            most = max(most, socket_memory_mib() - before)
            time.sleep(0.05)
        siege.join()
        self.count += PARKED
        yield Verdict("training: strangers park no memory", 1, most < MOST_SOCKET_MIB, f"{most:.0f} MiB of kernel memory",
                      "echelon " + " ".join(map(str, job.words)))

    def _at_the_rendezvous(self, dice):
        """While the first machine waits for the second: strangers are closed in time, few descriptors are held, and the
        job forms and gives the usual weights."""
        endpoint = f"127.0.0.1:{free_port()}"
        words = ["--nnodes", 2, "--rdzv-endpoint", endpoint, "--secret-file", self.secret]
        first = self._job("first", *words, "--workers", 2)
        first.wait_until(lambda: int(endpoint.split(":")[1]) in listeners(first.pid), 20)
        ports = sorted(listeners(first.pid))
        watch = Watch(first)
        results = self._siege(ports, dice)
        watch.stop()
        command = "echelon " + " ".join(map(str, first.words))
        yield from self._in_time("rendezvous", results, command)
        yield Verdict("rendezvous: descriptors are bounded", 1, watch.most < MOST_DESCRIPTORS,
                      f"{watch.most} descriptors in one process", command)
        second = self._job("second", *words, "--workers", 1)
        yield self._same_hash("rendezvous: the weights are those of an undisturbed run", first.finish(60))
        second.finish(10)

    def _while_connecting(self, dice):
        """The ranks' own ports, which are open for milliseconds: so one rank is stopped before it connects, and the others
        go on listening."""
        for attempt in range(20):
            job = self._job(f"connecting{attempt}", "--world", "tcp", "--workers", 3, "--lost-after", 60)
            while job.running() and not children(job.pid):
                pass  # a rank is connected a few milliseconds after it was started
            late = next(iter(children(job.pid)), 0)
            if not late:
                continue
            os.kill(late, signal.SIGSTOP)
            job.wait_until(lambda: len(listeners(job.pid)) > 1 or job.training(), 5)
            ports = sorted(port for port, pid in listeners(job.pid).items() if pid != late)
            if ports and not job.training():
                break
            job.close()  # it was connected before it could be stopped
        else:
            self.table.note("ports: no rank could be stopped before it was connected")
            return
        watch, end = Watch(job), time.monotonic() + CONNECTING_SECONDS
        results = self._siege(ports, dice, until=lambda: time.monotonic() > end)
        watch.stop()
        os.kill(late, signal.SIGCONT)
        command = "echelon " + " ".join(map(str, job.words))
        yield from self._in_time("connecting", results, command)
        yield Verdict("connecting: descriptors are bounded", 1, watch.most < MOST_DESCRIPTORS,
                      f"{watch.most} descriptors in one process", command)
        yield self._same_hash("connecting: the weights are those of an undisturbed run", job.finish(60))

    def _rogues(self, dice):
        """Launchers that have the secret and then lie about lengths: the next honest one still finds its job."""
        endpoint = f"127.0.0.1:{free_port()}"
        words = ["--nnodes", 2, "--rdzv-endpoint", endpoint, "--secret-file", self.secret]
        first = self._job("first", *words, "--workers", 2)
        port = int(endpoint.split(":")[1])
        first.wait_until(lambda: port in listeners(first.pid), 20)
        command = "echelon " + " ".join(map(str, first.words))
        for length in (0, 2**31, 2**32 - 1, 2**63, 2**64 - 1):
            for shape in ("<Q", ">Q"):
                entered, closed = rogue(port, self.key, struct.pack(shape, length) + dice.randbytes(4096))
                self.count += 1
                yield Verdict("rendezvous: a member that lies about lengths is closed", 1, entered and closed,
                              f"length {length}: {'not closed' if entered else 'not let in with the right secret'}", command)
        second = self._job("second", *words, "--workers", 1)
        yield self._same_hash("rendezvous: a job forms after members that lied", first.finish(60))
        second.finish(10)

    def _mismatch(self, test, words, other, naming, env=None, dice=None):
        """Two launchers that do not belong together: the second ends, both say why, within 3 s."""
        port = free_port()
        endpoint = ["--nnodes", 2, "--rdzv-endpoint", f"127.0.0.1:{port}", "--workers", 1]
        first = self._job("first", *endpoint, *words)
        first.wait_until(lambda: port in listeners(first.pid), 20)
        second = self._job("second", *endpoint, *other, env=env)
        said = lambda: any(word in first.said() for word in naming)
        times = {}
        while time.monotonic() - second.began < 4 and len(times) < 2:
            if said():
                times.setdefault("first", time.monotonic() - second.began)
            if not second.running():
                times.setdefault("second", time.monotonic() - second.began)
            time.sleep(0.01)
        took = times.get("first", 99)
        yield Verdict(f"{test}: who listens says so within 3 s", 9, took < 3 + SLACK,
                      f"after 4 s its stderr is {first.said().strip()[-200:]!r}", "echelon " + " ".join(map(str, first.words)))
        outcome = second.finish(0.05)
        took = times.get("second", 99)
        held = outcome.code in (1, 2) and any(word in outcome.err for word in naming) and took < 3 + SLACK
        yield Verdict(f"{test}: who connects says so within 3 s", 9, held, f"within 4 s: {outcome.brief()}", outcome.command())

    def _wrong_secret(self, dice):
        yield from self._mismatch("wrong secret", ["--secret-file", self.secret], [], ["secret"],
                                  env={"ECHELON_SECRET": dice.randbytes(32).hex()})

    def _other_job(self, dice):
        both = ["--secret-file", self.secret]
        yield from self._mismatch("other job id", both, [*both, "--rdzv-id", "other"], ["job"])

    def _tls_and_plain(self, dice):
        both = ["--secret-file", self.secret]
        yield from self._mismatch("TLS against plain", [*both, "--tls"], both, ["TLS", "encrypt"])
        yield from self._mismatch("plain against TLS", both, [*both, "--tls"], ["TLS", "encrypt"])

    def _count(self, connections):
        self.count += connections

    def _listener(self, name, path, dice, *words):
        listener = http_listeners.Listener(self.program, os.path.join(self.folder, f"{self.number}-{name}.err"), name, *words)
        self.jobs.append(listener)
        yield from http_listeners.attack(name, listener, path, dice, self._count)

    def _page(self, dice):
        yield from self._listener(http_listeners.PAGE, "/api/runs", dice, "--root", self.folder)

    def _serve(self, dice):
        self._reference()
        run = os.path.join(self.folder, "clean-3")
        yield from self._listener("serve", "/v2/models/digits", dice, f"digits={run}")

    def _weak_secrets(self, dice):
        for weak in ("0" * 64, "00" * 16, "ab" * 15, "", "x" * 64):
            outcome = self.program.run("train", os.path.join(self.program.source, "recipes/demo.toml"), "--nnodes", 2,
                                       "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--run", os.path.join(self.folder, "weak"),
                                       env={"ECHELON_SECRET": weak}, seconds=3)
            yield Verdict("a weak secret is refused", 9, outcome.code == 2 and "secret" in outcome.err.lower(),
                          f"secret {weak[:20]}...: {outcome.brief()}", f"ECHELON_SECRET={weak} {outcome.command()}")


class Watch:
    """The most descriptors that one process of a job has had at a time."""

    def __init__(self, job):
        self.job, self.most, self.over = job, 0, threading.Event()
        self.thread = threading.Thread(target=self._look)
        self.thread.start()

    def _look(self):
        while not self.over.wait(0.05):
            self.most = max([self.most, *(len(descriptors(pid)) for pid in processes(self.job.pid))])

    def stop(self):
        self.over.set()
        self.thread.join()
