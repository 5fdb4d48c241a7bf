"""Runs the attacked program: with a time limit, a limit of its address space, and its peak memory measured."""
import dataclasses
import os
import resource
import select
import shlex
import signal
import subprocess
import tempfile
import time


@dataclasses.dataclass
class Outcome:
    """How one call of the program ended. `code` is negative for a signal; `hung` if it had to be killed."""
    words: list
    code: int
    out: str
    err: str
    seconds: float
    peak_mib: float
    hung: bool
    cpu_seconds: float = 0.0

    def command(self):
        return " ".join(shlex.quote(str(word)) for word in self.words)

    def last_line(self):
        lines = [line for line in self.err.strip().splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def brief(self):
        if self.hung:
            return f"hung, killed after {self.seconds:.1f} s"
        end = f"signal {signal.Signals(-self.code).name}" if self.code < 0 else f"exit {self.code}"
        return f"{end}, {self.peak_mib:.0f} MiB, stderr ends: {self.last_line()[:200]!r}"


class Program:
    """The program under attack. `address_mib` caps the address space of each call (0: no cap, for sanitizers)."""

    def __init__(self, path, source, address_mib=4096):
        self.path, self.source, self.address_mib = os.path.abspath(path), os.path.abspath(source), address_mib

    def start(self, *words, out=subprocess.DEVNULL, err=subprocess.DEVNULL, cwd=None, env=None, limited=False):
        """Starts it in a process group of its own, so that `end` reaches its ranks too. Several workers on one machine
        map more address space than any useful limit, so these run without."""
        def limit():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if limited and self.address_mib:
                resource.setrlimit(resource.RLIMIT_AS, (self.address_mib << 20, self.address_mib << 20))
        return subprocess.Popen([self.path, *map(str, words)], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                cwd=cwd or self.source, env={**os.environ, **(env or {})}, preexec_fn=limit,
                                start_new_session=True)

    def run(self, *words, seconds=10.0, cwd=None, env=None, limited=True):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = self.start(*words, out=out, err=err, cwd=cwd, env=env, limited=limited)
            return finish(child, [self.path, *words], out, err, seconds)


def finish(child, words, out, err, seconds):
    """Waits for a started program for at most so many seconds, then kills its group. Reads what it has written."""
    began = time.monotonic()
    handle = os.pidfd_open(child.pid)
    try:
        hung = not select.select([handle], [], [], seconds)[0]
    finally:
        os.close(handle)
    took = time.monotonic() - began
    end(child)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    texts = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read(1 << 20).decode(errors="replace"))
    return Outcome(list(words), child.returncode, texts[0], texts[1], took, usage.ru_maxrss / 1024, hung,
                   usage.ru_utime + usage.ru_stime)


def end(child):
    """Kills what is left of the process group of a child that has not been waited for yet."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def stop(child):
    """`end`, and waits for it."""
    if child.returncode is None:
        end(child)
        child.wait()
