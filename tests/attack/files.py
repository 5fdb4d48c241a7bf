"""Hostile recipes, data files, weights and inputs."""
import os
import re

import hostile_checkpoints
import hostile_data
import hostile_recipes
from base_runs import BaseRuns
from table import Verdict
from trees import remove

SECONDS, MEMORY_MIB = 15, 400


class Files:
    """Hostile recipes, data files, weights and inputs: exit code 2 with a reason, no signal, bounded memory and time."""
    name, full_tries = "files", 2400

    def __init__(self, program, folder, table):
        self.program, self.folder = program, folder
        self.base = BaseRuns(program, os.path.join(folder, "base"))
        self.kinds = [("recipe", test) for test in hostile_recipes.MAKERS] + [("data", test) for test in hostile_data.MAKERS]
        self.kinds += [("weights", ""), ("input", "")]

    def close(self):
        pass

    def attempt(self, number, dice):
        here = os.path.join(self.folder, "try")
        remove(here)
        os.makedirs(here)
        kind, test = self.kinds[number % len(self.kinds)]
        yield from getattr(self, "_" + kind)(test, here, dice)

    def _recipe(self, test, here, dice):
        item, maker = hostile_recipes.MAKERS[test]
        text, refused = maker(dice, here)
        path = os.path.join(here, "attack.toml")
        if text is not None:
            with open(path, "wb") as file:
                file.write(text if isinstance(text, bytes) else text.encode())
        more = ["--world", "sim", "--cluster", os.path.join(here, "cluster.toml")] if test == "cluster file" else []
        check = self.program.run("check", path, *more, "--cores", 1, seconds=SECONDS)
        yield self._verdict(f"check: {test}", item, check, None)
        yield _sizes_make_sense([path, *more], check)
        train = self.program.run("train", path, *more, "--run", os.path.join(here, "run"), "--cores", 1, seconds=SECONDS)
        yield self._verdict(f"train: {test}", item, train, refused)
        if check.code == 0 and train.code != 0 and not train.hung and not _stopped_by_loss(train):
            yield Verdict("check finds what train meets", 5, False,
                          f"check passes, train does not: {train.brief()}", f"{check.command()}; {train.command()}")
        else:
            yield Verdict("check finds what train meets", 5, True)

    def _data(self, test, here, dice):
        item, maker = hostile_data.MAKERS[test]
        data = os.path.join(here, "data")
        os.makedirs(data)
        lines, refused = maker(data, dice)
        model = '[model]\nname = "gpt"\nlayers = 1\nheads = 1\nwidth = 8\n' if test == "data: text" else hostile_recipes.MODEL
        path = os.path.join(here, "attack.toml")
        with open(path, "w") as file:
            file.write(hostile_recipes.recipe(model=model, data="[data]\n" + lines))
        train = self.program.run("train", path, "--run", os.path.join(here, "run"), "--cores", 1, seconds=SECONDS)
        yield self._verdict(f"train: {test}", item, train, refused)

    def _weights(self, test, here, dice):
        outcome = self.program.run(*hostile_checkpoints.checkpoint(self.base, dice), seconds=SECONDS)
        yield self._verdict("eval: weights with a hostile header", 3, outcome, None)

    def _input(self, test, here, dice):
        outcome = self.program.run(*hostile_checkpoints.inputs(self.base, here, dice), seconds=SECONDS)
        yield self._verdict("predict: hostile input", 12, outcome, None)

    def _verdict(self, test, item, outcome, refused):
        return Verdict(test, item, not (why := _problem(outcome, refused)), f"{why} ({outcome.brief()})", outcome.command())


def _sizes_make_sense(words, outcome):
    """No message speaks of a negative size that the files did not say: that is an overflow which went unnoticed."""
    said = ""
    for path in filter(os.path.isfile, words):
        with open(path, errors="replace") as file:
            said += file.read(1 << 20)  # some are made as large as a disk
    strange = [number for number in re.findall(r"(?<!\w)-\d{5,}", outcome.err + outcome.out) if number not in said]
    return Verdict("sizes in messages are no overflows", 5, not strange, f"{strange[:2]} in: {outcome.last_line()[:200]}",
                   outcome.command())


def _stopped_by_loss(outcome):
    """A training that began and diverged: `check` cannot know."""
    return "not a number" in outcome.err


def _problem(outcome, refused):
    training = "run folder:" in outcome.err
    if outcome.hung:
        return "" if training and refused is None else "it hangs"  # a long training is no fault
    if outcome.code < 0:
        return "ended by a signal"
    if outcome.peak_mib > MEMORY_MIB:
        return f"{outcome.peak_mib:.0f} MiB of memory"
    if outcome.code not in (0, 2):
        return "neither done (0) nor refused (2)"
    if outcome.code == 2 and not outcome.err.strip() and not outcome.out.strip():
        return "refused without a reason"
    return "accepted" if refused and outcome.code == 0 else ""
