"""Changes to one file of a run folder, and to checkpoints as a whole. Each returns words for the report."""
import hashlib
import json
import os
import shutil
import struct

import formats
from trees import remove


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def truncate(path, dice, _):
    length = dice.randrange(os.path.getsize(path))
    os.truncate(path, length)
    return f"cut to {length} bytes"


def empty(path, dice, _):
    os.truncate(path, 0)
    return "emptied"


def flip(path, dice, _):
    content = bytearray(read(path))
    place, bit = dice.randrange(len(content)), dice.randrange(8)
    content[place] ^= 1 << bit
    write(path, content)
    return f"bit {bit} of byte {place} flipped"


def replace(path, dice, _):
    write(path, dice.randbytes(os.path.getsize(path)))
    return "replaced by noise of the same length"


def zero_block(path, dice, _):
    content = bytearray(read(path))
    begin = dice.randrange(len(content))
    size = min(len(content) - begin, 512)
    changed = bytes(content[begin:begin + size]) != bytes(size)
    content[begin:begin + size] = bytes(size)
    write(path, content)
    return f"{size} bytes from {begin} zeroed" if changed else flip(path, dice, _)


def append(path, dice, _):
    write(path, read(path) + dice.randbytes(dice.randrange(1, 100)))
    return "bytes added at the end"


def delete(path, dice, _):
    os.unlink(path)
    return "deleted"


def fifo(path, dice, _):
    remove(path)
    os.mkfifo(path)
    return "replaced by a FIFO"


def device(path, dice, _):
    remove(path)
    os.symlink("/dev/zero", path)
    return "replaced by a link to /dev/zero"


def folder(path, dice, _):
    remove(path)
    os.makedirs(path)
    return "replaced by a folder"


def link_out(path, dice, outside):
    """The very content, but elsewhere."""
    target = os.path.join(outside, "link-" + os.path.basename(path))
    shutil.move(path, target)
    os.symlink(target, path)
    return "moved out of the folder, a link in its place"


DAMAGE = {f.__name__: f for f in (truncate, empty, flip, replace, zero_block, append, delete)}
STRANGE = {f.__name__: f for f in (fifo, device, folder, link_out)}


def weights_hash(raw):
    """The program's hash of weights: over names, types, shapes and bytes in the order of names."""
    header, body = formats.read_safetensors(raw)
    digest = hashlib.sha256()
    for name in sorted(key for key in header if key != "__metadata__"):
        tensor = header[name]
        digest.update(struct.pack("<Q", len(name)) + name.encode() + tensor["dtype"].lower().encode())
        digest.update(struct.pack("<Q", len(tensor["shape"])))
        digest.update(b"".join(struct.pack("<Q", n) for n in tensor["shape"]))
        begin, end = tensor["data_offsets"]
        digest.update(body[begin:end])
    return digest.hexdigest()


def forge(step, **changes):
    """Makes the manifest of a checkpoint consistent again, with the files as they are now and with these changes."""
    path = os.path.join(step, "manifest.json")
    manifest = json.loads(read(path))
    del manifest["manifest_sha256"]
    for name in manifest["files"]:
        content = read(os.path.join(step, name))
        manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if "weights_sha256" not in changes:
        manifest["weights_sha256"] = weights_hash(read(os.path.join(step, "model.safetensors")))
    manifest.update(changes)
    whole = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    manifest["manifest_sha256"] = hashlib.sha256(whole.encode()).hexdigest()
    write(path, (json.dumps(manifest, sort_keys=True, indent=1) + "\n").encode())


def plant_nan(step, dice, count):
    """NaN or infinity in the weights of a checkpoint, with a manifest that fits."""
    path = os.path.join(step, "model.safetensors")
    raw = bytearray(read(path))
    begin = 8 + struct.unpack("<Q", raw[:8])[0]
    numbers = (len(raw) - begin) // 4
    for _ in range(min(count, numbers)):
        bad = dice.choice([float("nan"), float("inf"), float("-inf")])
        struct.pack_into("<f", raw, begin + 4 * dice.randrange(numbers), bad)
    write(path, raw)
    forge(step)
