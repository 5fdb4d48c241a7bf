"""A small training job over TCP, started and watched."""
import json
import os
import time

from process import finish, stop


def settings(epochs):
    return ["--set", "data.limit=1500", "--set", "data.limit_test=50", "--set", f"train.epochs={epochs}", "--cores", 1, "--json"]


class Job:
    """One call of `echelon train` in the background. Ends with `finish` or `close`."""

    def __init__(self, program, folder, name, *words, env=None, recipe=None, settings=settings(3)):
        self.run = os.path.join(folder, name)
        self.out, self.err = (open(f"{self.run}.{kind}", "w+b") for kind in ("out", "err"))
        self.words = ["train", recipe or os.path.join(program.source, "recipes/demo.toml"), *words, "--run", self.run, *settings]
        self.began, self.ended = time.monotonic(), None
        self.child = program.start(*self.words, out=self.out, err=self.err, env=env)

    @property
    def pid(self):
        return self.child.pid

    def said(self):
        """What stands on stderr so far."""
        with open(self.err.name, errors="replace") as file:
            return file.read()

    def running(self):
        """True until it has ended; does not take its exit status."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def wait_until(self, condition, seconds):
        """Whether the condition came true before the time was over or the job had ended."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end or not self.running():
                return condition()
            time.sleep(0.005)
        return True

    def training(self):
        """Whether metrics of this run have been written."""
        try:
            return os.path.getsize(os.path.join(self.run, "metrics.jsonl")) > 0
        except OSError:
            return False

    def finish(self, seconds):
        outcome = finish(self.child, ["echelon", *self.words], self.out, self.err, seconds)
        self.ended = time.monotonic()
        self.close()
        return outcome

    def close(self):
        """Ends it if it still runs. May be called again."""
        stop(self.child)
        self.out.close()
        self.err.close()


def result(outcome):
    """The object that --json prints; {} if there is none."""
    try:
        return json.loads(outcome.out.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {}
