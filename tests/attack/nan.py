"""Losses that are no numbers, in every system."""
import json
import os
import re
import struct

import data_sets
import formats
from table import Verdict

STEEP = """[model]
name = "mlp"
hidden = [8, 8, 8, 8]

[data]
kind = "npy"
path = "%s"

[optim]
name = "sgd"
lr = 1e6

[train]
steps = 60
batch = 12
seed = 1
"""
BAD_SAMPLE = 37


class NotANumber:
    """A rate far too high, and one sample that is no number, in every system: the last line names rank, step and layer."""
    name, full_tries = "nan", 0

    def __init__(self, program, folder, table):
        self.program, self.folder = program, folder
        self.systems = [system["name"] for system in json.loads(program.run("systems", "--json", seconds=30).out)]
        type(self).full_tries = 2 * len(self.systems)
        self.recipes = {}
        for kind, bad in (("steep", 0.5), ("sample", float("inf"))):
            data = os.path.join(folder, kind)
            self._write(data, bad)
            text = STEEP % data
            self.recipes[kind] = os.path.join(folder, f"{kind}.toml")
            with open(self.recipes[kind], "w") as file:
                file.write(text if kind == "steep" else text.replace("1e6", "0.01"))

    def close(self):
        pass

    def _write(self, folder, bad):
        for split, count in (("train", 72), ("test", 8)):
            rows = [[((7 * i + 3 * j) % 11 - 5) / 3 for j in range(4)] for i in range(count)]
            if split == "train":
                rows[BAD_SAMPLE][2] = bad
            numbers = b"".join(struct.pack("<4f", *row) for row in rows)
            data_sets.write(f"{folder}/{split}_x.npy", formats.npy("<f4", (count, 4), numbers))
            labels = b"".join(struct.pack("<q", i % 3) for i in range(count))
            data_sets.write(f"{folder}/{split}_y.npy", formats.npy("<i8", (count,), labels))

    def attempt(self, number, dice):
        system = self.systems[number // 2 % len(self.systems)]
        kind = ("sample", "steep")[number % 2]
        world = dice.choice(["threads", "sim", "processes"])
        run = os.path.join(self.folder, f"{number}")
        child = ["train", self.recipes[kind], "--system", system, "--workers", 4, "--world", world, "--cores", 1, "--run", run]
        outcome = self.program.run(*child, seconds=30, limited=False)
        where = f"{system}, {world}"
        if kind == "steep" and outcome.code == 0:
            yield Verdict("a rate too high ends in numbers or in exit 2", 7, True)
            return
        line, command = outcome.last_line(), outcome.command()
        yield Verdict(f"{kind}: exit code 2", 7, outcome.code == 2, f"{where}: {outcome.brief()}", command)
        for what, words in (("the step", r"step \d+"), ("the layer", r"(layer|parameter) '[^']+'"), ("the rank", r"rank \d+")):
            yield Verdict(f"{kind}: the last line names {what}", 7, re.search(words, line) is not None,
                          f"{where}: {line[:200]!r}", command)
        if kind == "sample":
            yield Verdict("sample: the last line names the sample", 7, re.search(rf"sample {BAD_SAMPLE}\b", line) is not None,
                          f"{where}: {line[:200]!r}", command)
