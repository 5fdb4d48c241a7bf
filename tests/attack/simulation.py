"""Promises of the simulated world: planned faults happen or are said not to have, and a signal stops it."""
import os
import signal

from jobs import Job, result
from table import Verdict

MACHINES = '[[machines]]\nname = "m"\ncount = 2\n'
SETTINGS = ["--world", "sim", "--set", "data.limit=640", "--set", "data.limit_test=50", "--cores", 1, "--json"]


def planned_faults(program, folder, number):
    """A disk that is full all the time, and a crash planned for after the end."""
    plans = {"a disk that is full throughout is noticed": '[[faults.disk_full]]\nmachine = "m0"\nbegin = 0\n',
             "a fault planned for after the end fails the run": "[[faults.crash]]\nrank = 1\nat = 1e9\n"}
    for index, (test, plan) in enumerate(plans.items()):
        cluster = os.path.join(folder, f"{number}-{index}.toml")
        with open(cluster, "w") as file:
            file.write(MACHINES + plan)
        outcome = program.run("train", os.path.join(program.source, "recipes/demo.toml"), *SETTINGS, "--set", "train.epochs=1",
                              "--cluster", cluster, "--run", os.path.join(folder, f"{number}-sim-{index}"), seconds=30,
                              limited=False)
        words = ("disk", "not saved", "full") if "disk" in test else ("fault", "crash")
        held = any(word in line for word in words for line in outcome.err.splitlines() if "run folder" not in line)
        held = held and (outcome.code != 0 or "disk" in test)
        yield Verdict(f"simulation: {test}", 8, held, outcome.brief(), f"{outcome.command()}   # with {plan!r}")


def stopped(program, folder, number):
    """SIGTERM in the middle of a long simulated training."""
    job = Job(program, folder, f"{number}-sim", "--workers", 4, settings=[*SETTINGS, "--set", "train.epochs=2000"])
    try:
        job.wait_until(job.training, 20)
        os.kill(job.pid, signal.SIGTERM)
        outcome = job.finish(4)
    finally:
        job.close()
    held = outcome.code == 0 and result(outcome).get("stopped_by") == "signal" and outcome.seconds < 3
    yield Verdict("simulation: SIGTERM saves and stops it within 3 s", 8, held, outcome.brief(), outcome.command())
