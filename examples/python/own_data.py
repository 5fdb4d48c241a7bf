"""Your own data: arrays where they lie in memory, a data set written in Python, a metric, a callback, predictions.

    python3 examples/python/own_data.py [EPOCHS]
"""
import sys

import numpy as np

import echelon
from echelon import nn

random = np.random.default_rng(0)
labels = random.integers(0, 2, 600)
angle = random.uniform(0, np.pi, 600)
points = np.stack([np.cos(angle) + labels, np.sin(angle) * (1 - 2 * labels) + 0.5 * labels], 1).astype(np.float32)
points += random.normal(0, 0.1, points.shape).astype(np.float32)  # two moons


class Moons:
    """The same as a data set that computes its samples."""
    classes = 2

    def __len__(self):
        return 400

    def __getitem__(self, i):
        return points[i], labels[i]


class Watch(echelon.Callback):
    def on_evaluation(self, event):
        print(f"step {event['step']}: {event['metrics']}")


def sure(predictions, targets):
    """Share of answers with a probability of at least 90 %."""
    return float(np.mean(predictions.max(1) > 0.9))


recipe = {
    "model": nn.sequential(nn.linear(32), nn.relu(), nn.linear(32), nn.relu(), nn.linear(2)),
    "optim": {"name": "adam", "lr": 0.01},
    "train": {"epochs": int(sys.argv[1]) if len(sys.argv) > 1 else 30, "batch": 50, "eval_every_epochs": 10},
}
test = (points[400:], labels[400:])
run = echelon.train(recipe, (points[:400], labels[:400]), test=test, callbacks=[Watch()], metrics={"sure": sure},
                    name="moons")
same = echelon.train(recipe, Moons(), test=test, name="moons")
print("arrays and the data set give the same weights:",
      run.summary["weights_sha256"] == same.summary["weights_sha256"])
answers = run.predict(points[400:])
print(f"{100 * np.mean(answers.argmax(1) == labels[400:]):.1f} % of the test points are on the right moon")
