"""Echelon from Python: train neural networks on CPUs, with the same bits as the program `echelon`.

    import echelon

    run = echelon.train("recipes/demo.toml")          # or a dict with the same tables
    print(run.summary["test_accuracy"], run.metrics)  # metrics is a pandas.DataFrame
    print(run.predict(pictures))                      # probabilities, one row a picture

`train` takes NumPy arrays and PyTorch tensors as data without a copy, data sets written in Python, metrics and
callbacks. `echelon.nn` builds networks. docs/python.md is the guide.
"""
from . import nn
from ._core import BadInput, Error, Failure
from .data import Dataset, dataset
from .run import Run, load, runs
from .training import Callback, StopTraining, check, systems, train

__version__ = "0.1.0"
__all__ = ["BadInput", "Callback", "Dataset", "Error", "Failure", "Run", "StopTraining", "check", "dataset", "load", "nn",
           "runs", "systems", "train"]

BadInput.__doc__ = "Something that you can cure, found before anything was changed. `problems` has each of them."
BadInput.problems = property(lambda self: [line.strip() for line in str(self).splitlines() if line.strip()])
Error.__doc__ = "What Echelon raises beside BadInput: of a run that could not go on."
Failure.__doc__ = "What went wrong while it ran: a full disk, a lost worker."
