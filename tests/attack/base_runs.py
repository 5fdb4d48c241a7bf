"""A tiny trained run for each kind of data, made once, copied for every try; and what each verb says of it untouched."""
import json
import os
import re
import shutil

import data_sets
import formats
from trees import remove

DIGITS = """[model]
name = "mlp"
hidden = [8]

[data]
kind = "digits"
limit = 64
limit_test = 20
transform = [{ kind = "normalise", mean = 0.1307, std = 0.3081 }]

[optim]
name = "momentum"
lr = 0.02

[train]
steps = 2
batch = 16
seed = 1
keep = 9
"""
STEPS = (2, 4, 6)
# Verbs that look after runs: they read and change what is in a folder as well.
KEEPERS = {
    "tag": lambda base: ["runs", "tag", "run", "x"],
    "star": lambda base: ["runs", "star", "run"],
    "archive": lambda base: ["runs", "archive", "run"],
    "register": lambda base: ["models", "register", "run", "--name", "m"],
    "show": lambda base: ["runs", "show", "run"],
    "list": lambda base: ["runs", "list"],
    "find": lambda base: ["runs", "find", "steps > 0"],
    "html": lambda base: ["runs", "export", "run", "--html", os.path.join(base.work, "run.html")],
}


def answer(verb, outcome):
    """What a verb says, without what may differ between two calls; None if it did not say it."""
    try:
        said = json.loads(outcome.out.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return None
    if verb.startswith("resume"):
        return {key: said.get(key) for key in ("weights_sha256", "steps", "test_loss", "stopped_by")}
    if isinstance(said, dict):
        said.pop("run_dir", None)
    return said


def normalised(line):
    return re.sub(r"[\d.]+", "#", line)


class BaseRuns:
    def __init__(self, program, folder):
        self.program, self.folder, self.references = program, folder, {}
        self.work = os.path.join(folder, "work")
        self.run, self.data, self.outside = (os.path.join(self.work, name) for name in ("run", "data", "outside"))
        self.recipe = os.path.join(self.work, "recipe.toml")
        os.makedirs(folder, exist_ok=True)
        self.picture = os.path.join(folder, "digit.png")
        with open(self.picture, "wb") as file:
            file.write(formats.png(28, 28, [bytes(200 if 12 < x < 16 else 0 for x in range(28)) for _ in range(28)]))

    def fresh(self, kind):
        """The untouched run of that kind, its data and recipe, in `work`."""
        base = os.path.join(self.folder, kind)
        if not os.path.exists(base):
            self._make(kind, base)
        remove(self.work)
        shutil.copytree(base, self.work, symlinks=True)

    def _make(self, kind, base):
        remove(self.work)
        os.makedirs(self.outside)
        with open(os.path.join(self.outside, "keep.txt"), "w") as file:
            file.write("somebody else's\n")
        if kind != "digits":
            data_sets.make(kind, self.data, 1)
        with open(self.recipe, "w") as file:
            file.write(DIGITS if kind == "digits" else data_sets.recipe(kind, self.data))
        for step in STEPS:
            more = ["--resume"] if step > STEPS[0] else []
            done = self.program.run("train", self.recipe, "--run", self.run, "--set", f"train.steps={step}", "--cores", 1,
                                    *more, seconds=60)
            if done.code != 0:
                raise SystemExit(f"the run to be attacked could not be made: {done.command()}\n{done.err}")
        os.rename(self.work, base)

    def words(self, verb, kind):
        """The command of a verb; eval-last is `eval --checkpoint last`."""
        name, _, which = verb.partition("-")
        if name == "resume":
            recipe = os.path.join(self.run, "recipe.toml") if which == "own" else self.recipe
            more = ["--set", "train.keep=1"] if which == "keep1" else []
            return ["train", recipe, "--run", self.run, "--resume", "--set", "train.steps=8", *more, "--cores", 1, "--json"]
        if name == "eval":
            return ["eval", self.run, "--checkpoint", which, "--cores", 1, "--json"]
        if name == "predict":
            return ["predict", self.run, self.picture, "--checkpoint", which, "--json"]
        if name in KEEPERS:
            return [*KEEPERS[name](self), "--root", self.work, "--json"]
        return ["sample", self.run, "--prompt", "the", "--length", 8, "--checkpoint", which, "--json"]

    def reference(self, kind, verb):
        """(answer, lines of stderr) for the untouched run."""
        if (kind, verb) not in self.references:
            self.fresh(kind)
            done = self.program.run(*self.words(verb, kind), seconds=60)
            said = answer(verb, done)
            if done.code != 0 or said is None:
                raise SystemExit(f"the untouched run does not work: {done.command()}\n{done.err}")
            self.references[kind, verb] = (said, {normalised(line) for line in done.err.splitlines()})
        return self.references[kind, verb]
