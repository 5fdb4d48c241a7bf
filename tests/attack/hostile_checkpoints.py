"""Weights files whose headers lie, in a checkpoint whose manifest fits them; and hostile inputs of predict."""
import json
import os

import formats
import hostile_data
import mutations


def headers(raw, dice):
    header, body = formats.read_safetensors(raw)
    name = dice.choice(sorted(key for key in header if key != "__metadata__"))
    tensor = header[name]
    how = dice.randrange(12)
    huge = dice.choice([2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, -1])
    if how == 0:
        return formats.safetensors(header, body, length=dice.choice([0, 1, 2**31, 2**40, 2**63, 2**64 - 1, 100 << 20]))
    if how == 1:
        tensor["shape"] = [huge] * dice.randrange(1, 4)
    elif how == 2:
        tensor["data_offsets"] = [dice.choice([0, huge]), huge]
    elif how == 3:
        tensor["data_offsets"] = [tensor["data_offsets"][1], tensor["data_offsets"][0]]
    elif how == 4:
        tensor["dtype"] = dice.choice(["F64", "X", "", "F" * 5000, 7, None, "BOOL"])
    elif how == 5:
        header.pop(name)
    elif how == 6:
        header[name + "2"] = dict(tensor)
    elif how == 7:
        return formats.safetensors("{" + '"a":{' * dice.choice([100, 100_000]), body)
    elif how == 8:
        return formats.safetensors(json.dumps(header)[:-1] + "," + json.dumps({name: tensor})[1:], body)
    elif how == 9:
        tensor["shape"] = dice.choice([[], [0], [1] * 5000, "x", None, [1.5], [[1]]])
    elif how == 10:
        header["__metadata__"] = dice.choice([{"k": "v" * 100_000}, [1], {"k": 1}, "x"])
    else:
        return hostile_data.mutated(raw, dice)
    return formats.safetensors(header, body)


def checkpoint(base, dice):
    """The weights of the newest checkpoint get a hostile header, its manifest the hashes of it."""
    base.fresh("digits")
    step = os.path.join(base.run, "checkpoints", "step-6")
    path = os.path.join(step, "model.safetensors")
    kept = json.loads(mutations.read(os.path.join(step, "manifest.json")))["weights_sha256"]
    mutations.write(path, headers(mutations.read(path), dice))
    mutations.forge(step, weights_sha256=kept)
    return base.words("eval-6", "digits")


def inputs(base, folder, dice):
    """A picture or a row that predict is to refuse or to answer."""
    base.fresh("digits")
    path = os.path.join(folder, "input.png")
    how = dice.randrange(6)
    if how == 0:
        path = dice.choice(["1,2", "nan", ",".join(["1e400"] * 784), ",".join(["nan"] * 784), "," * 783, "", "0x10,1",
                            "1," * 100_000])
    elif how == 1:
        os.mkfifo(path)
    elif how == 2:
        os.symlink("/dev/zero", path)
    elif how == 3:
        os.mkdir(path)
    else:
        with open(path, "wb") as file:
            file.write(hostile_data.hostile_picture(dice))
    return ["predict", base.run, "--checkpoint", "last", "--json", "--", path]
