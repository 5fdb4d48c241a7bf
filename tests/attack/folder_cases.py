"""The attacks on run folders and data: which file is changed how, which verb follows, and what it must answer.

same     the untouched run's answer, or a refusal (exit 2) or note that names what is wrong
said     a refusal or a note, even if the answer is the same
refused  exit 2
calm     anything but a signal, a hang or a lot of memory: what was changed may be changed
"""
import dataclasses
import json
import os
import random
import shutil
import typing

import data_sets
import mutations
from base_runs import KEEPERS, STEPS

READERS = ("eval-last", "eval-best", "eval-4", "predict-last")


@dataclasses.dataclass
class Case:
    test: str
    item: int
    kind: str
    verb: str
    wanted: str
    words: tuple                      # one of them must stand in the message
    change: typing.Callable           # (base, dice) -> what was done, in words
    more: tuple = ()                  # further words of the command
    wants: typing.Callable = None     # (base) -> wanted, where it depends on what the change has done


def step_of(base, step, name=""):
    return os.path.join(base.run, "checkpoints", f"step-{step}", name).rstrip("/")


def on_file(name, how):
    return lambda base, dice: f"{name} " + how(os.path.join(base.run, name), dice, base.outside)


def used_step(verb):
    return 4 if verb.endswith("-4") else STEPS[-1]


def checkpoint_files():
    """Each file of each checkpoint is damaged or replaced by something strange."""
    for table, item, row in ((mutations.DAMAGE, 3, "damaged"), (mutations.STRANGE, 4, "strange")):
        for how in table.values():
            for name in ("manifest.json", "model.safetensors", "state.safetensors"):
                for step in (6, 4):
                    for verb in ("resume", *READERS):
                        reads = name != "state.safetensors" or verb == "resume"
                        # Which one is the best depends on the run: another answer than the untouched run's is told.
                        used = step == used_step(verb) and verb != "eval-best"
                        wanted = "said" if reads and used else "same"
                        path = f"checkpoints/step-{step}/{name}"
                        yield Case(f"{verb.split('-')[0]}: {row} checkpoint file", item, "digits", verb, wanted,
                                   (f"step-{step}", name), on_file(path, how))
    for how in mutations.DAMAGE.values():
        yield Case("sample: damaged checkpoint file", 3, "text", "sample-last", "said", ("step-6",),
                   on_file("checkpoints/step-6/model.safetensors", how))


def metrics_damaged(base):
    """Whether a line of the metrics is no record any more."""
    path = os.path.join(base.run, "metrics.jsonl")
    for line in mutations.read(path).split(b"\n")[:-1] if os.path.exists(path) else []:
        try:
            if "step" not in json.loads(line):
                return "said"
        except (ValueError, TypeError):
            return "said"
    whole = not os.path.exists(path) or mutations.read(path)[-1:] in (b"\n", b"")
    return "same" if whole else "said"


def other_files():
    for how in mutations.DAMAGE.values():
        yield Case("resume: damaged metrics", 12, "digits", "resume", "same", ("metric",), on_file("metrics.jsonl", how),
                   wants=metrics_damaged)
        for name in ("logs/rank_0.log", "summary.json"):
            yield Case("resume: damaged log or summary", 12, "digits", "resume", "same", (name,), on_file(name, how))
        for verb in ("resume", "resume-own", *READERS):
            yield Case(f"{verb.split('-')[0]}: damaged recipe", 3, "digits", verb, "same",
                       ("recipe", "model", "data", "optim", "train", "no run here"), on_file("recipe.toml", how))
    for how in mutations.STRANGE.values():
        for name, wanted in (("metrics.jsonl", "said"), ("logs/rank_0.log", "said"), ("summary.json", "same")):
            yield Case("resume: strange file", 4, "digits", "resume", wanted, (os.path.basename(name),), on_file(name, how))
        for verb in ("resume-own", *READERS):
            yield Case(f"{verb.split('-')[0]}: strange recipe", 4, "digits", verb, "said", ("recipe.toml",),
                       on_file("recipe.toml", how))


def renamed(base, old, new, *, copy):
    if copy:
        shutil.copytree(step_of(base, old), step_of(base, new))
    else:
        os.rename(step_of(base, old), step_of(base, new))
    return f"step-{old} {'copied' if copy else 'renamed'} to step-{new}"


def swapped(base, name):
    one, other = step_of(base, 6, name), step_of(base, 4, name)
    first, second = mutations.read(one), mutations.read(other)
    mutations.write(one, second), mutations.write(other, first)
    return f"{name} of step-4 and step-6 swapped"


def all_damaged(base, dice):
    for step in STEPS:
        name = dice.choice(["manifest.json", "model.safetensors"])
        dice.choice([mutations.flip, mutations.truncate, mutations.delete])(step_of(base, step, name), dice, None)
    return "a file of every checkpoint is damaged"


def with_nan(base, dice):
    for step in STEPS:
        mutations.plant_nan(step_of(base, step), dice, dice.choice([1, 10, 1000]))
    return "weights of all checkpoints hold NaN or infinity, manifests are consistent"


def wrong_hash(base, dice):
    mutations.forge(step_of(base, 6), weights_sha256=dice.randbytes(32).hex())
    return "weights_sha256 of step-6's manifest is another, the manifest is consistent"


def whole_checkpoints():
    for verb in ("resume", "eval-60", "eval-last", "predict-60", "predict-last"):
        for old in STEPS:
            yield Case(f"{verb.split('-')[0]}: copy of a step under another number", 3, "digits", verb, "said", ("step-60",),
                       lambda base, dice, old=old: renamed(base, old, 60, copy=True))
    for verb in ("resume", "eval-last", "eval-9", "predict-9"):
        yield Case(f"{verb.split('-')[0]}: step under another number", 3, "digits", verb, "said", ("step-9",),
                   lambda base, dice: renamed(base, 6, 9, copy=False))
    for name in ("manifest.json", "model.safetensors", "state.safetensors"):
        for verb in ("resume", *READERS):
            wanted = "same" if name == "state.safetensors" and verb != "resume" else "said"
            yield Case(f"{verb.split('-')[0]}: files of two steps swapped", 3, "digits", verb, wanted, ("step-6", "step-4"),
                       lambda base, dice, name=name: swapped(base, name))
    for verb in ("resume", *READERS):
        yield Case(f"{verb.split('-')[0]}: every checkpoint damaged", 12, "digits", verb, "refused", ("checkpoint", "step-"),
                   all_damaged)
        yield Case(f"{verb.split('-')[0]}: weights that are no numbers", 3, "digits", verb, "said",
                   ("finite", "NaN", "nan", "not a number", "no number", "inf"), with_nan)
    for verb in ("resume", "eval-last"):
        yield Case(f"{verb.split('-')[0]}: forged weights_sha256", 3, "digits", verb, "same", ("step-6", "weights"), wrong_hash)


def edited(base, old, new):
    path = os.path.join(base.run, "recipe.toml")
    text = mutations.read(path).decode()
    if old not in text:
        raise SystemExit(f"the recipe of the run has no {old!r}:\n{text}")
    mutations.write(path, text.replace(old, new).encode())
    return f"recipe.toml of the folder: {old!r} became {new!r}"


def edited_recipes():
    normalise = '[[data.transform]]\nkind = "normalise"\nmean = 0.1307\nstd = 0.3081\n'
    for old, new in (("mean = 0.1307", "mean = 0.9"), ("std = 0.3081", "std = 30.0"), (normalise, ""),
                     ("[model]\n", "[model]\ndropout = 0.5\n"), ("limit = 64", "limit = 48"), ("seed = 1", "seed = 2")):
        for verb in ("resume-own", "eval-last", "predict-last"):
            # The seed and the number of training samples are nothing that eval and predict use.
            wanted = "said" if verb == "resume-own" or "data.transform" in old or "=" in old and "0." in old else "same"
            yield Case(f"{verb.split('-')[0]}: edited recipe in the folder", 3, "digits", verb, wanted,
                       ("recipe", "transform", "data", "model", "seed"), lambda base, dice, o=old, n=new: edited(base, o, n))


SETTINGS = {
    "digits": ("data.transform=[]", 'data.transform=[{kind="normalise",mean=0.5,std=0.3081}]', "data.scale=0.5",
               'data.transform=[{kind="shift",most=2},{kind="normalise",mean=0.1307,std=0.3081}]', "data.limit=48",
               "model.hidden=[9]", "optim.lr=0.5", "optim.momentum=0.5", "train.batch=8", "train.seed=2", "train.shards=1",
               "schedule.name=cosine", "optim.weight_decay=0.1", "optim.clip_norm=0.1", "model.dropout=0.5"),
    "images": ('data.transform=[{kind="flip"}]', "data.channels=3", "data.size=4"),
    "tar": ('data.transform=[{kind="flip"}]', "data.size=4"),
    "npy": ("data.scale=2.0", 'data.transform=[{kind="noise",deviation=0.5}]'),
    "idx": ("data.scale=0.5", "data.classes=3", 'data.transform=[{kind="normalise",mean=0.5,std=0.5}]'),
    "csv": ("data.limit=12",),
    "text": ('data.windows="random"', "data.length=4", 'data.level="byte"', "data.train_fraction=0.8"),
}


def other_settings():
    for kind, settings in SETTINGS.items():
        for setting in settings:
            key = setting.split("=")[0]
            yield Case("resume: another setting", 2, kind, "resume", "refused",
                       (key, key.split(".")[0], key.split(".")[1]), lambda base, dice, s=setting: s, ("--set", setting))


def training_file(base, kind, dice):
    found = []
    for parent, _, names in os.walk(base.data):
        found += [os.path.join(parent, name) for name in names if kind == "text" or "train" in os.path.join(parent, name)]
    return dice.choice(sorted(found))


def other_data(base, kind, dice):
    data_sets.make(kind, base.data, dice.randrange(2, 1 << 30))
    return "every sample has another content under the same name"


def one_file(base, kind, dice, table):
    path = training_file(base, kind, dice)
    how = dice.choice(sorted(table))
    return os.path.relpath(path, base.data) + " " + table[how](path, dice, base.outside)


def data():
    for kind in data_sets.KINDS:
        yield Case("resume: other data under the same names", 2, kind, "resume", "refused", ("data",),
                   lambda base, dice, k=kind: other_data(base, k, dice))
        verb = "sample-last" if kind == "text" else "eval-last"
        yield Case("eval, sample: other data under the same names", 2, kind, verb, "calm", (),
                   lambda base, dice, k=kind: other_data(base, k, dice))
        for _ in range(3):
            yield Case("resume: a data file damaged", 2, kind, "resume", "same", ("data", kind, "train", ".png", ".txt"),
                       lambda base, dice, k=kind: one_file(base, k, dice, mutations.DAMAGE))
        strange = {name: how for name, how in mutations.STRANGE.items() if name != "link_out"}
        for verb in ("resume", verb):
            yield Case(f"{verb.split('-')[0]}: a data file is no file", 4, kind, verb, "said" if verb == "resume" else "calm",
                       ("data",), lambda base, dice, k=kind, s=strange: one_file(base, k, dice, s))


def folder_out(base, name):
    """A folder of the run is a link to one elsewhere that holds more than ours."""
    path, target = os.path.join(base.run, name), os.path.join(base.outside, os.path.basename(name))
    shutil.move(path, target)
    os.makedirs(os.path.join(target, "step-1"))
    mutations.write(os.path.join(target, "step-1", "data"), b"somebody else's\n")
    os.symlink(target, path)
    return f"{name} is a link to a folder elsewhere"


def linked_folders():
    for name in ("checkpoints", "checkpoints/step-6", "logs", "tb"):
        for verb in ("resume", "resume-keep1", *READERS):
            reads = name == "checkpoints" or (name.endswith("step-6") and used_step(verb) == 6)
            wanted = "said" if reads or (name == "logs" and verb.startswith("resume")) else "same"
            yield Case(f"{verb.split('-')[0]}: a folder is a link out of the run", 4, "digits", verb, wanted,
                       (os.path.basename(name), "link"), lambda base, dice, n=name: folder_out(base, n))


def file_out(base, name):
    """A file that the program would write, or write beside and rename, is a link to somebody else's."""
    target = os.path.join(base.outside, "keep.txt")
    path = os.path.join(base.run, name)
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(target, path)
    return f"{name} is a link to a file elsewhere"


def odd_summary(base, dice):
    key = dice.choice(["steps", "stopped_by", "weights_sha256", "workers", "init", "test_accuracy"])
    value = dice.choice([{"a": 1}, [], "x", 1e300, None, -2**63, {"from": 3}])
    mutations.write(os.path.join(base.run, "summary.json"), json.dumps({key: value}).encode())
    return f"{key} of summary.json is {value}"


def kept_runs():
    """The verbs that look after runs: no link is followed, nothing outside is touched, and no file ends them."""
    for verb in KEEPERS:
        for name in ("checkpoints", "checkpoints/step-4"):
            yield Case(f"{verb}: a folder is a link out of the run", 4, "digits", verb, "calm", (),
                       lambda base, dice, n=name: folder_out(base, n))
        for name in ("labels.json.new", "labels.json", "metrics.jsonl", "summary.json", "checkpoints/kept.new"):
            yield Case(f"{verb}: a file is a link out of the run", 4, "digits", verb, "calm", (),
                       lambda base, dice, n=name: file_out(base, n))
        for how in mutations.STRANGE.values():
            yield Case(f"{verb}: strange metrics", 4, "digits", verb, "calm", (), on_file("metrics.jsonl", how))
        yield Case(f"{verb}: a summary of other types", 12, "digits", verb, "calm", (), odd_summary)


def all_cases():
    """Every case, those of different kinds mixed, so that the first hundred are a sample of all."""
    groups = [list(group()) for group in (checkpoint_files, other_files, whole_checkpoints, edited_recipes, other_settings,
                                          data, linked_folders, kept_runs)]
    for group in groups:
        random.Random(0).shuffle(group)
    places = [(index / len(group), number, case) for number, group in enumerate(groups)
              for index, case in enumerate(group)]
    return [case for _, _, case in sorted(places, key=lambda place: place[:2])]
