"""Distributed on two processes, from a script: the same weights as in one, and a callback in the process that called.

    python3 examples/python/two_processes.py [STEPS]
"""
import os
import sys

import echelon

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
recipe = {
    "model": "lenet5",
    "data": {"kind": "digits"},
    "optim": {"name": "momentum", "lr": 0.02},
    "train": {"steps": steps, "batch": 64},
}
heard = []
one = echelon.train(recipe, name="one")
two = echelon.train(recipe, workers=2, cores=1, callbacks=[lambda e: heard.append((e["step"], os.getpid()))], name="two")
print(f"heard of {len(heard)} steps, all here: {all(pid == os.getpid() for _, pid in heard)}")
print(f"{two.summary['workers']} {two.summary['world']}: the same weights as one process:",
      one.summary["weights_sha256"] == two.summary["weights_sha256"])
