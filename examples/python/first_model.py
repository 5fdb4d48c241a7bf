"""A first model: LeNet-5 on the digits that come with Echelon.

    python3 examples/python/first_model.py [STEPS]
"""
import sys

import echelon

recipe = {
    "model": "lenet5",
    "data": {"kind": "digits", "transform": [{"kind": "normalise", "mean": 0.1307, "std": 0.3081}]},
    "optim": {"name": "adam", "lr": 1e-3},
    "train": {"epochs": 5, "batch": 64},
}
short = {"train.steps": int(sys.argv[1])} if len(sys.argv) > 1 else {}
run = echelon.train(recipe, set=short, name="first")
print(f"{100 * run.summary['test_accuracy']:.1f} % of the test digits are read right")
print(f"weights {run.summary['weights_sha256'][:16]}..., in {run.path}")
