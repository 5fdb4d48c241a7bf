"""What the tests of the Python package share: the package as it was built, the program, a small recipe."""
import json, os, subprocess, sys, tempfile, unittest
from pathlib import Path

PACKAGE, PROGRAM, SOURCE = (os.path.abspath(word) for word in sys.argv[1:4])
del sys.argv[1:4]
sys.path.insert(0, PACKAGE)

import numpy as np  # noqa: E402

import echelon  # noqa: E402

DEMO = os.path.join(SOURCE, "recipes/demo.toml")
QUICK = {"data.limit": 300, "data.limit_test": 100, "train.epochs": 2}


def program(*words, **kwargs):
    """The program's last line of JSON."""
    done = subprocess.run([PROGRAM, *words, "--json"], capture_output=True, text=True, cwd=SOURCE, check=True, **kwargs)
    return json.loads(done.stdout.strip().splitlines()[-1])


def blobs(samples=120, seed=0):
    """Three classes of points that are easy to tell apart."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, samples).astype(np.int64)
    x = (np.eye(3)[y] * 3 + random.normal(0, 0.3, (samples, 3))).astype(np.float32)
    return x, y


def recipe(**changes):
    tables = {"model": {"name": "mlp", "hidden": [8]}, "optim": {"name": "adam", "lr": 0.02},
              "train": {"epochs": 5, "batch": 20}}
    tables.update(changes)
    return tables


class InFolder(unittest.TestCase):
    """Each test in a new, empty folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.folder = Path(folder.name)
