"""`echelon.train`: from a recipe and data to a run."""
from __future__ import annotations

import multiprocessing
import os
import signal
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from . import _core
from .data import dataset
from .nn import Network
from .progress import make_progress
from .run import Run

Recipe = Union[str, "os.PathLike[str]", Mapping[str, Any]]
_WORLDS = ("threads", "processes", "tcp", "mpi", "sim")  # as `echelon train --world` has them
Metric = Callable[[np.ndarray, np.ndarray], float]


class StopTraining(Exception):
    """Raised by a callback: the run saves and stops after this step. `train` then returns as usual."""


class Callback:
    """What happens in a run. Inherit, and override what you need. An exception ends the run and is raised by `train`;
    StopTraining ends it in an orderly way."""

    def on_step(self, event: Dict[str, Any]) -> None:
        """After each step: step, total_steps, epoch, lr, loss, accuracy, samples_per_s, seconds, eta_seconds."""

    def on_evaluation(self, event: Dict[str, Any]) -> None:
        """After each evaluation: step, epoch, part ("val" or "test"), best, and metrics by name."""

    def on_note(self, text: str) -> None:
        """A sentence for people: a warning, a decision."""


class _Step(Callback):
    """A plain function as a callback for steps."""

    def __init__(self, function: Callable[[Dict[str, Any]], Any]) -> None:
        self.on_step = function  # type: ignore[method-assign]


class _Listener:
    """Hands what the library tells to callbacks and the progress bar. Calling it returns True to stop the run."""

    def __init__(self, callbacks: Sequence[Callback], progress: Any) -> None:
        self.callbacks = callbacks
        self.progress = progress
        self.result: Dict[str, Any] = {}
        self.stopped = False

    def __call__(self, kind: str, event: Dict[str, Any]) -> bool:
        if kind == "result":
            self.result = event
            return False
        if self.progress:
            show = {"step": self.progress.step, "evaluation": self.progress.evaluation,
                    "note": lambda e: self.progress.say("note: " + e["text"])}[kind]
            show(event)
        try:
            for callback in self.callbacks:
                getattr(callback, "on_" + kind)(event["text"] if kind == "note" else event)
        except StopTraining:
            self.stopped = True
            return True
        return False


def _overrides(settings: Optional[Mapping[str, Any]]) -> List[str]:
    def text(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(text(v) for v in value) + "]"
        return str(value)
    return [f"{key}={text(value)}" for key, value in (settings or {}).items()]


def _with_networks(recipe: Mapping[str, Any]) -> Dict[str, Any]:
    out = dict(recipe)
    if isinstance(out.get("model"), Network):
        out["model"] = out["model"].table()
    elif isinstance(out.get("model"), str):
        out["model"] = {"name": out["model"]}
    return out


def _expect_whole(value: Any, name: str, least: int, most: int) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise _core.BadInput(f"{name}: takes a whole number from {least} to {most}, not {value!r}")


def _expect_functions(callbacks: Sequence[Any], metrics: Mapping[str, Metric]) -> None:
    for callback in callbacks:
        if not (callable(callback) or isinstance(callback, Callback) or hasattr(callback, "on_evaluation")):
            raise TypeError(f"callbacks: {callback!r} is neither a Callback nor a function")
    for name, metric in metrics.items():
        if not callable(metric):
            raise TypeError(f"metrics: {name!r} is no function of (predictions, targets) but {metric!r}")


def _named(name: str, metric: Metric) -> Metric:
    """The metric, with a complaint that names it where what it returns is no number."""
    def value(predictions: np.ndarray, targets: np.ndarray) -> float:
        result = metric(predictions, targets)
        try:
            return float(result)
        except (TypeError, ValueError):
            raise TypeError(f"the metric {name!r} returned {result!r}, which is no number") from None
    return value


def _settings(recipe: Recipe, *, data: Any, validation: Any, test: Any, classes: int, set: Optional[Mapping[str, Any]],
              system: str, plan: str, workers: int, world: str, cores: Optional[int], run: Any, root: Any, resume: Any,
              name: str) -> Dict[str, Any]:
    _expect_whole(workers, "workers", 1, 100000)
    if cores is not None:
        _expect_whole(cores, "cores", 1, 1024)
    if world and world not in _WORLDS:
        raise _core.BadInput(f"world: takes one of {', '.join(_WORLDS)}, not {world!r}")
    parts = {}
    if data is not None:
        parts["train"] = dataset(data, classes=classes)
        known = parts["train"].classes
        for part, given in (("validation", validation), ("test", test)):
            if given is not None:
                parts[part] = dataset(given, classes=known)
    elif validation is not None or test is not None:
        raise ValueError("validation and test are samples beside data: give data too")
    resume = {False: "", None: "", True: "yes"}.get(resume, resume)
    if resume not in ("", "yes", "auto"):
        raise ValueError('resume is False, True or "auto"')
    made = _with_networks(recipe) if isinstance(recipe, Mapping) else os.fspath(recipe)
    if isinstance(made, dict) and parts and "train" in made and "test" not in parts and "validation" not in parts:
        given = made.get("data", {})
        if not {"validation", "test"} & given.keys() and "evaluate" not in made["train"]:
            made["train"] = {**made["train"], "evaluate": False}  # there is nothing to evaluate on
    return {"recipe": made, "name": name, "overrides": _overrides(set), "system": system, "plan": plan,
            "workers": int(workers), "world": world, "cores": int(cores or 0), "run": os.fspath(run) if run else "",
            "root": os.fspath(root), "resume": resume, "parts": parts}


def train(recipe: Recipe, data: Any = None, *, validation: Any = None, test: Any = None, classes: int = 0,
          set: Optional[Mapping[str, Any]] = None, system: str = "", plan: str = "", workers: int = 1, world: str = "",
          cores: Optional[int] = None, run: Any = None, root: "str | os.PathLike[str]" = "runs", resume: Any = False,
          callbacks: Sequence[Any] = (), metrics: Optional[Mapping[str, Metric]] = None,
          progress: Optional[bool] = None, name: str = "python") -> Run:
    """Trains a network and returns its run.

    recipe      the path of a recipe, or a dict with its tables: {"model": ..., "optim": ..., "train": ...}. A model
                may be a name, a table, or an `echelon.nn.Network`
    data        samples to train with: (x, y), or an object with __len__ and __getitem__ (`echelon.dataset`). Without
                it the recipe's [data] says where they are
    validation, test   samples to evaluate with while it trains, and at the end; or shares of `data` in the recipe's
                data table: {"data": {"validation": 0.1}}
    set         single settings over the recipe: {"optim.lr": 0.01}
    system, plan       how several workers train together, and how the model is split (`echelon systems`, docs/plans.md)
    workers     more than 1: processes that this one starts; world="threads", "tcp" or "sim" for others. The weights do
                not depend on it, unless `system` is another than bsp
    cores       of each worker, from 1; by default all, shared out
    run, root   the run's folder, or the folder in which a new one is made
    resume      True: go on from the last checkpoint of `run`; "auto": start if there is none
    callbacks   Callback objects, or functions that are given each step's event
    metrics     functions of (predictions, targets) that evaluations report beside their own: {"top2": f}
    progress    a bar: by default where a terminal or a notebook shows it

    Raises BadInput, before anything is changed, with everything that is wrong with the recipe. Ctrl-C saves the run and
    raises KeyboardInterrupt; `resume=True` goes on from there. Other Python threads run while it trains.
    """
    _expect_functions(callbacks, metrics or {})
    settings = _settings(recipe, data=data, validation=validation, test=test, classes=classes, set=set, system=system,
                         plan=plan, workers=workers, world=world, cores=cores, run=run, root=root, resume=resume,
                         name=name)
    own = {key: _named(key, metric) for key, metric in (metrics or {}).items()}
    listening = [c if isinstance(c, Callback) or hasattr(c, "on_evaluation") else _Step(c) for c in callbacks]
    listener = _Listener(listening, make_progress(progress))
    every_step = any(type(c).on_step is not Callback.on_step or isinstance(c, _Step) for c in listening)
    try:
        if workers > 1 and world in ("", "processes", "tcp"):
            _train_in_processes(settings, listener, every_step, own)
        else:
            _core.train(settings, listener, every_step, own)
    finally:
        if listener.progress:
            listener.progress.finish()
    result = listener.result
    if result.get("signal") and not listener.stopped:
        _pass_on(result["signal"])
    return Run(result["run_dir"]) if result else Run(settings["run"])


def _pass_on(name: str) -> None:
    """The run has been saved because of a signal: now it has the effect that it has in any Python program."""
    if name == "SIGINT":
        raise KeyboardInterrupt
    os.kill(os.getpid(), getattr(signal, name))


def _train_in_processes(settings: Dict[str, Any], listener: _Listener, every_step: bool,
                        metrics: Dict[str, Metric]) -> None:
    """Trains in a copy of this process, which starts the workers: they have the data without copying them. What happens
    comes back through a pipe, so callbacks run here, in the process that called `train`."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            receiver.close()
            _core.train(settings, lambda kind, event: sender.send((kind, event)), every_step, metrics)
            code = 0
        except BaseException as problem:  # told to the one that called `train`
            sender.send(("error", problem if _can_travel(problem) else _core.Failure(str(problem))))
        finally:
            os._exit(code)
    sender.close()
    error: Optional[BaseException] = None
    interrupted = False
    while True:
        try:
            kind, event = receiver.recv()
            if kind == "error":
                error = event
            elif listener(kind, event):
                os.kill(child, signal.SIGTERM)
        except EOFError:
            break
        except KeyboardInterrupt:  # the terminal has told the workers too; a signal to this process alone has not
            interrupted = True
            os.kill(child, signal.SIGINT)
        except BaseException as problem:  # of a callback
            error = error or problem
            listener.callbacks = []
            os.kill(child, signal.SIGTERM)
    receiver.close()
    _, status = os.waitpid(child, 0)
    if interrupted:
        raise KeyboardInterrupt
    if error is not None:
        raise error
    if status != 0 and not listener.result:
        raise _core.Failure(f"the workers ended without a result (status {os.waitstatus_to_exitcode(status)})")


def _can_travel(problem: BaseException) -> bool:
    import pickle
    try:
        return isinstance(pickle.loads(pickle.dumps(problem)), type(problem))
    except Exception:
        return False


def check(recipe: Recipe, data: Any = None, *, validation: Any = None, test: Any = None, classes: int = 0,
          set: Optional[Mapping[str, Any]] = None, system: str = "", plan: str = "", workers: int = 1,
          world: str = "") -> Dict[str, Any]:
    """What would be trained, without training: {"recipe": TOML with every default, "model": layers, weights, memory}.
    Raises BadInput with everything that is wrong."""
    toml, model = _core.check(_settings(recipe, data=data, validation=validation, test=test, classes=classes, set=set,
                                        system=system, plan=plan, workers=workers, world=world, cores=None, run=None,
                                        root="runs", resume=False, name="python"))
    return {"recipe": toml, "model": model}


def systems() -> List[str]:
    """The names of the ways to train on several workers."""
    return _core.system_names()
