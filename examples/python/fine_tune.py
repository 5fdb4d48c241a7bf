"""Fine-tune: train on digits 0 to 4, then let the same network learn 5 to 9 from few samples, with the first layers kept.

    python3 examples/python/fine_tune.py [EPOCHS]
"""
import gzip
import sys
from pathlib import Path

import numpy as np

import echelon

folder = Path(__file__).resolve().parents[2] / "share/digits"


def read(name, header):
    return np.frombuffer(gzip.open(folder / name).read(), np.uint8, offset=header)


pictures = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
labels = read("train-labels-idx1-ubyte.gz", 8).astype(np.int64)
low, high = labels < 5, labels >= 5
few = np.flatnonzero(high)[:200]
test = np.flatnonzero(high)[-1000:]
epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
recipe = {"optim": {"name": "adam", "lr": 1e-3}, "train": {"epochs": epochs, "batch": 50}}

first = echelon.train({**recipe, "model": "lenet5"}, (pictures[low], labels[low]), name="low")
data, rest = (pictures[few], labels[few] - 5), (pictures[test], labels[test] - 5)
scratch = echelon.train({**recipe, "model": "lenet5"}, data, test=rest, name="scratch")
tuned = echelon.train({**recipe, "model": {"name": "lenet5", "init": str(first.path), "freeze": ["conv*"]}}, data,
                      test=rest, name="tuned")
print(f"200 samples of 5 to 9: {100 * scratch.summary['test_accuracy']:.1f} % from scratch, "
      f"{100 * tuned.summary['test_accuracy']:.1f} % after 0 to 4")
