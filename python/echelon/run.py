"""What a run leaves behind: its summary, metrics, weights, and what its network says."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy as np

from . import _core
from .data import _array


class Run:
    """A run's folder. `summary` is what `echelon train --json` prints."""

    def __init__(self, path: "str | os.PathLike[str]", checkpoint: str = "best", ema: bool = False) -> None:
        self.path = Path(path)
        self.checkpoint = checkpoint
        self.ema = ema
        self._loaded: Optional[_core.Loaded] = None

    def __repr__(self) -> str:
        return f"echelon.Run({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.path.name

    @property
    def summary(self) -> Dict[str, Any]:
        """How the run ended; empty while it has not."""
        file = self.path / "summary.json"
        return json.loads(file.read_text()) if file.exists() else {}

    @property
    def points(self) -> List[Dict[str, Any]]:
        """The lines of metrics.jsonl: one dict for each."""
        file = self.path / "metrics.jsonl"
        if not file.exists():
            return []
        return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]

    @property
    def metrics(self) -> Any:
        """The metrics as a pandas.DataFrame: a row for each line of metrics.jsonl, `step` and `epoch` first."""
        try:
            import pandas
        except ImportError:
            raise ImportError("run.metrics is a pandas.DataFrame, and pandas is not installed: apt install "
                              "python3-pandas; run.points has the same as a list of dicts") from None
        return pandas.DataFrame(self.points)

    @property
    def recipe(self) -> str:
        """The recipe as it was run, as TOML."""
        return (self.path / "recipe.toml").read_text()

    @property
    def loaded(self) -> _core.Loaded:
        """The weights of `checkpoint` ("best", "last" or a step), read when they are first asked for."""
        if self._loaded is None:
            self._loaded = _core.Loaded(str(self.path), self.checkpoint, self.ema)
        return self._loaded

    @property
    def class_names(self) -> List[str]:
        """The names of the classes, in the order of the columns of `predict`."""
        return self.loaded.class_names

    @property
    def weights(self) -> Dict[str, np.ndarray]:
        """The weights by name, where they lie: arrays that cannot be written to."""
        return self.loaded.weights()

    def predict(self, x: Any, cores: int = 0) -> np.ndarray:
        """What the network says of each sample: [samples, classes] probabilities, or [samples, numbers].

        `x` is an array or a tensor of samples as they were trained on: uint8 stays uint8, and the transforms of the
        recipe (normalise, ...) are applied here too. Nothing is copied before they are.
        """
        array = _array(x, "x")
        if array.size == 0:
            raise _core.BadInput(f"x: an array of shape {array.shape} is empty: there is nothing to predict")
        _expect_finite(array)
        return self.loaded.predict(array, cores)


def _expect_finite(array: np.ndarray) -> None:
    if array.dtype.kind != "f" or np.isfinite(array.sum(dtype=np.float64)):
        return
    rows = array.reshape(len(array), -1) if array.ndim > 1 else array.reshape(-1, 1)
    wrong = np.argwhere(~np.isfinite(rows))
    if len(wrong):
        row, column = wrong[0]
        raise _core.BadInput(f"x: row {row}, column {column} (from 0) is {rows[row, column]}, which is not finite")


def load(run: "str | os.PathLike[str]", checkpoint: str = "best", ema: bool = False) -> Run:
    """A run by its folder, by its name in runs/, or as it was registered ("digits@2", "digits@production").
    `checkpoint`: "best", "last" or a step. BadInput if there is none."""
    loaded = _core.Loaded(str(run), checkpoint, ema)
    found = Run(loaded.path, checkpoint, ema)
    found._loaded = loaded
    return found


def runs(root: "str | os.PathLike[str]" = "runs") -> List[Run]:
    """The runs in a folder, by name."""
    if not Path(root).is_dir():
        return []
    return [Run(p) for p in sorted(Path(root).iterdir()) if (p / "recipe.toml").exists()]
