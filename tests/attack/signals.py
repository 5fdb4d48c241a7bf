"""Signals in every phase, killed ranks, a full disk, a late machine, a flipped bit."""
import os
import re
import signal
import time

import mutations
import simulation
from faults import flip_exponent, needle, places, small_disk
from jobs import Job, result
from network import free_port, processes
from table import Verdict

CASES = (("start", "alone"), ("load", "alone"), ("train", "alone"), ("save", "alone"), ("train", "processes"),
         ("save", "processes"), ("start", "threads"), ("train", "threads"), ("train", "sim"), ("start", "tcp"), ("train", "tcp"))
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT)
SETTINGS = ["--set", "data.limit=1500", "--set", "data.limit_test=50", "--set", "train.epochs=6", "--set",
            "train.checkpoint_every_steps=7", "--cores", 1, "--json"]
WORLDS = {"alone": [], "processes": ["--workers", 2], "threads": ["--workers", 2, "--world", "threads"],
          "sim": ["--workers", 2, "--world", "sim"], "tcp": ["--workers", 2, "--world", "tcp"]}


class Signals:
    """Signals in every phase, killed ranks, a full disk, a machine that comes late, a flipped bit in a rank's memory."""
    name, full_tries = "signals", 140

    def __init__(self, program, folder, table):
        self.program, self.folder, self.table = program, folder, table
        self.wanted, self.jobs, self.skipped = None, [], set()
        self.scenarios = [lambda dice, c=case, s=number: self._signal(*c, s, dice) for case in CASES for number in SIGNALS]
        others = [self._simulation, self._kills, self._rank_killed, self._disk_full, self._flipped_bit, self._rank_killed_early,
                  self._late_machine]
        for index, other in enumerate(others * 2):
            self.scenarios.insert(3 * index, other)

    def close(self):
        for job in self.jobs:
            job.close()
        self.jobs = []

    def attempt(self, number, dice):
        self.number = number
        try:
            yield from self.scenarios[number % len(self.scenarios)](dice)
        finally:
            self.close()

    def _job(self, name, *words, **more):
        more.setdefault("settings", SETTINGS)
        self.jobs.append(Job(self.program, self.folder, f"{self.number}-{name}", *words, **more))
        return self.jobs[-1]

    def _hash(self):
        if not self.wanted:
            job = Job(self.program, self.folder, "clean", settings=SETTINGS)
            done = job.finish(120)
            self.wanted = result(done).get("weights_sha256")
            if not self.wanted:
                raise SystemExit(f"the undisturbed run does not work: {done.command()}\n{done.err}")
        return self.wanted

    def _resumed(self, test, item, job, world):
        """Goes on with a run that was ended: its weights must become those of one that was not."""
        resume = ["--resume"] if os.path.exists(os.path.join(job.run, "recipe.toml")) else []
        again = Job(self.program, self.folder, os.path.basename(job.run), *WORLDS[world], *resume, settings=SETTINGS)
        self.jobs.append(again)
        outcome = again.finish(60)
        held = result(outcome).get("weights_sha256") == self._hash()
        return Verdict(test, item, held, f"resumed: {outcome.brief()}", outcome.command())

    def _reach(self, job, phase, dice):
        """Waits until the job is in that phase."""
        if phase == "start":
            time.sleep(dice.uniform(0.0, 0.03))
        elif phase == "load":
            time.sleep(dice.uniform(0.03, 0.08))
        elif phase == "train":
            job.wait_until(job.training, 20)
        else:
            saves = os.path.join(job.run, "checkpoints")
            job.wait_until(lambda: os.path.isdir(saves) and any(name.endswith(".new") for name in os.listdir(saves)), 20)

    def _signal(self, phase, world, number, dice):
        self._hash()
        job = self._job("signal", *WORLDS[world])
        self._reach(job, phase, dice)
        name = signal.Signals(number).name
        command = "echelon " + " ".join(map(str, job.words)) + f"   # {name} in phase {phase}"
        if not job.running():
            yield self._resumed(f"{name}: resumed to the same weights", 12, job, world)
            return
        os.kill(job.pid, number)
        sent = time.monotonic()
        outcome = job.finish(6)
        yield Verdict(f"{name} in {phase}: ends within 3 s", 4 if world != "sim" else 8, not outcome.hung and outcome.seconds < 3,
                      f"{world}: {time.monotonic() - sent:.1f} s: {outcome.brief()}", command)
        if phase in ("train", "save") and number != signal.SIGUSR1:
            said = result(outcome)
            held = outcome.code == 0 and said.get("stopped_by") in ("signal", "end")
            yield Verdict(f"{name} in {phase}: saves and ends with exit 0", 12, held, f"{world}: {outcome.brief()}", command)
        if not outcome.hung:
            yield self._resumed(f"{name}: resumed to the same weights", 12, job, world)

    def _kills(self, dice):
        """SIGKILL of all processes at random moments, then resume."""
        self._hash()
        world = dice.choice(["alone", "processes", "threads"])
        job, kills = None, 0
        for attempt in range(4):
            resume = ["--resume"] if job and os.path.exists(os.path.join(job.run, "recipe.toml")) else []
            job = self._job("killed", *WORLDS[world], *resume)
            time.sleep(dice.uniform(0.02, 0.4))
            kills += job.running()
            job.close()
        yield self._resumed("SIGKILL: resumed to the same weights", 12, job, world)
        folder = os.path.join(job.run, "checkpoints")
        left = [name for name in (os.listdir(folder) if os.path.isdir(folder) else []) if not name[5:].isdigit()]
        yield Verdict("SIGKILL: no remains of saves after a resume", 12, not left, f"left: {left}", "")

    def _ranks(self, job, count, seconds=20):
        """The processes of the ranks, in order, once they are there."""
        job.wait_until(lambda: len(processes(job.pid)) > count, seconds)
        return [pid for pid in processes(job.pid) if pid != job.pid][:count]

    def _killed_rank_is_named(self, test, job, victim, pids):
        os.kill(pids[victim], signal.SIGKILL)
        killed = time.monotonic()
        named = job.wait_until(lambda: f"rank {victim}" in job.said(), 6)
        took = time.monotonic() - killed
        outcome = job.finish(6)
        yield Verdict(test, 9, named and took < 1.0 and outcome.code == 1 and f"rank {victim}" in outcome.last_line(),
                      f"rank {victim}, named {f'after {took:.1f} s' if named else 'never'}: {outcome.brief()}", outcome.command())

    def _rank_killed(self, dice):
        world = dice.choice([["--workers", 3], ["--workers", 3, "--world", "tcp"], ["--workers", 3, "--world", "tcp", "--tls"]])
        job = self._job("rank", *world)
        pids = self._ranks(job, 3)
        job.wait_until(job.training, 20)
        yield from self._killed_rank_is_named("a rank killed in training is named within 1 s", job, dice.randrange(3), pids)

    def _rank_killed_early(self, dice):
        job = self._job("early", "--workers", 3, "--world", "tcp", "--tls")
        pids = self._ranks(job, 3)
        time.sleep(dice.uniform(0, 0.06))
        if len(pids) == 3:
            yield from self._killed_rank_is_named("a rank killed in its first 60 ms under TLS is named within 1 s", job,
                                                  dice.randrange(3), pids)

    def _disk_full(self, dice):
        """A disk that is full somewhere in the training: whatever is announced as saved can be used."""
        folder = os.path.join(self.folder, "disk")
        size = dice.choice([0, 200, 400, 700, 1000, 1500, 2500]) + 4
        with small_disk(folder, size) as allowed:
            if not allowed:
                self._note("a full disk needs root: left out")
                return
            run = os.path.join(folder, "run")
            recipe = os.path.join(self.program.source, "recipes/demo.toml")
            outcome = self.program.run("train", recipe, *SETTINGS, "--run", run, seconds=60)
            usable = self.program.run("eval", run, "--checkpoint", "last", "--json", seconds=20)
            saved = usable.code == 0 and result(usable).get("step") == result(outcome).get("steps")
            words = ("not saved", "no space", "No space", "full")
            held = outcome.code in (0, 1, 2) and (saved or any(word in outcome.last_line() for word in words))
            yield Verdict("full disk: the last line says that the weights are not saved", 12, held,
                          f"{size} KiB: {outcome.brief()}; eval: {usable.brief()}", outcome.command() + f"   # on {size} KiB")
            yield Verdict("full disk: what is saved is whole", 12, usable.code in (0, 2), f"{size} KiB: {usable.brief()}",
                          usable.command())

    def _late_machine(self, dice):
        """With --nnodes 1:2 a machine that starts 4.5 s late joins, waits, or is refused by name."""
        secret = os.path.join(self.folder, f"{self.number}.secret")
        self.program.run("secret", secret, seconds=20)
        words = ["--nnodes", "1:2", "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--secret-file", secret, "--workers", 1]
        long = ["--set", "train.epochs=400", "--set", "data.limit_test=50", "--cores", 1, "--json"]
        first = self._job("early", *words, settings=long)
        first.wait_until(first.training, 10)
        time.sleep(max(0, 4.5 - (time.monotonic() - first.began)))
        second = self._job("late", *words, settings=long)
        second.wait_until(second.training, 6)
        apart = first.running() and first.training() and second.training()
        yield Verdict("a machine that comes late does not make a second job", 10, not apart,
                      f"both train: {second.said().strip()[-150:]!r}", "echelon " + " ".join(map(str, second.words)))

    def _flipped_bit(self, dice):
        """One bit of one rank's weights is flipped while nothing else changes them (a rate of 0): no checkpoint that the
        ranks disagree on is kept, and the rank is named."""
        if os.geteuid() != 0:
            self._note("a flipped bit needs root: left out")
            return
        still = ["--set", "optim.lr=0", "--set", "train.checkpoint_every_steps=20", "--set", "train.epochs=60", "--set",
                 "train.keep=99", "--set", "data.limit_test=50", "--cores", 1, "--json"]
        # With a link of its own, however fast, each rank has its weights in memory that no other sees.
        job = self._job("flip", "--workers", 3, "--link", "100gbit", settings=still)
        folder = os.path.join(job.run, "checkpoints")
        saved = lambda: [name for name in os.listdir(folder) if name[5:].isdigit()] if os.path.isdir(folder) else []
        job.wait_until(saved, 20)
        pids, victim = self._ranks(job, 3), dice.randrange(3)
        model = mutations.read(os.path.join(folder, saved()[0], "model.safetensors"))
        # Wherever they stand in its memory: rank 0 has a copy besides, from which it saves.
        spots = places(pids[victim], needle(model))
        if not spots:
            self._note("flipped bit: the weights were not found in the memory of the ranks")
            return
        for place in spots:
            flip_exponent(pids[victim], place)
        weights, before = self._weights(folder, saved()[0]), set(saved())
        later = lambda: [name for name in saved() if name not in before]
        job.wait_until(lambda: len(later()) > 3, 15)
        if job.running():
            os.kill(job.pid, signal.SIGTERM)
        outcome = job.finish(15)
        command = outcome.command() + f"   # a bit of rank {victim}'s weights flipped"
        # With a rate of 0 the weights never change, so a checkpoint kept afterwards is good if its weights are those of before.
        other = [name for name in later() if self._weights(folder, name) != weights]
        yield Verdict("flipped bit: no checkpoint that the ranks disagree on is kept", 11, not other and len(later()) <= 3,
                      f"rank {victim}: {len(later())} checkpoints were kept afterwards, {len(other)} of them with other weights; "
                      f"{outcome.brief()}", command)
        line = outcome.last_line()
        blamed = re.findall(r"rank (\d+) (?:has|holds|differs)", line) or re.findall(r"rank (\d+):", line)
        yield Verdict("flipped bit: the rank is named, and no other", 11, outcome.code != 0 and set(blamed) == {str(victim)},
                      f"rank {victim}: {outcome.brief()}", command)

    @staticmethod
    def _weights(folder, name):
        """The tensors of a checkpoint, without the header of the file."""
        content = mutations.read(os.path.join(folder, name, "model.safetensors"))
        return content[8 + int.from_bytes(content[:8], "little"):]

    def _simulation(self, dice):
        yield from simulation.planned_faults(self.program, self.folder, self.number)
        yield from simulation.stopped(self.program, self.folder, self.number)

    def _note(self, text):
        if text not in self.skipped:
            self.skipped.add(text)
            self.table.note(f"signals: {text}")
