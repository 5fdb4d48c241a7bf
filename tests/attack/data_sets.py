"""Tiny data sets of every kind, and the same with other contents under the same names."""
import os
import random
import struct

import formats

SAMPLES, TESTS, SIDE = 16, 4, 8
TEXT = "the whale, the whale! up helm, up helm! oh, all ye sweet powers of air, now hug me close! "


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def _pictures(dice, count):
    """(name, png): a bright half shows the class."""
    for number in range(count):
        label = number % 2
        rows = []
        for y in range(SIDE):
            bright = 128 if (y < SIDE // 2) == (label == 0) else 0
            rows.append(bytes(bright + dice.randrange(100) for _ in range(SIDE)))
        yield label, number, formats.png(SIDE, SIDE, rows)


def images(folder, dice):
    for split, count in (("train", SAMPLES), ("test", TESTS)):
        for label, number, picture in _pictures(dice, count):
            write(f"{folder}/{split}/{'ab'[label]}/{number}.png", picture)


def tar(folder, dice):
    for split, count in (("train", SAMPLES), ("test", TESTS)):
        members = []
        for label, number, picture in _pictures(dice, count):
            members += [(f"{number:04}.png", picture), (f"{number:04}.cls", str(label).encode())]
        write(f"{folder}/{split}.tar", formats.tar(members))


def npy(folder, dice):
    for split, count in (("train", SAMPLES), ("test", TESTS)):
        rows = [[dice.gauss(i % 2, 0.5) for _ in range(4)] for i in range(count)]
        write(f"{folder}/{split}_x.npy", formats.npy("<f4", (count, 4), b"".join(struct.pack("<4f", *r) for r in rows)))
        write(f"{folder}/{split}_y.npy", formats.npy("<i8", (count,), b"".join(struct.pack("<q", i % 2) for i in range(count))))


def idx(folder, dice):
    for split, count in (("train", SAMPLES), ("t10k", TESTS)):
        pixels = b"".join(dice.randbytes(SIDE * SIDE) for _ in range(count))
        write(f"{folder}/{split}-images-idx3-ubyte", formats.idx((count, SIDE, SIDE), pixels))
        write(f"{folder}/{split}-labels-idx1-ubyte", formats.idx((count,), bytes(i % 2 for i in range(count))))


def csv(folder, dice):
    for split, count in (("train", SAMPLES), ("test", TESTS)):
        lines = ["a,b,c,label"]
        lines += [",".join(f"{dice.gauss(i % 2, 0.5):.4f}" for _ in range(3)) + f",{'xy'[i % 2]}" for i in range(count)]
        write(f"{folder}/{split}.csv", ("\n".join(lines) + "\n").encode())


def text(folder, dice):
    words = TEXT.split()
    story = "".join(sorted(set(TEXT))) + " ".join(dice.choice(words) for _ in range(400))
    write(f"{folder}/story.txt", story.encode())


# kind: (writer, further lines of [data], [model])
KINDS = {
    "images": (images, "size = 8\nchannels = 1\n", 'name = "mlp"\nhidden = [8]\n'),
    "tar": (tar, "size = 8\nchannels = 1\n", 'name = "mlp"\nhidden = [8]\n'),
    "npy": (npy, "", 'name = "mlp"\nhidden = [8]\n'),
    "idx": (idx, "", 'name = "mlp"\nhidden = [8]\n'),
    "csv": (csv, "", 'name = "mlp"\nhidden = [8]\n'),
    "text": (text, 'level = "character"\nlength = 8\nwindows = "tiled"\nlimit = 16\nlimit_test = 4\n',
             'name = "gpt"\nlayers = 1\nheads = 1\nwidth = 8\n'),
}


def make(kind, folder, seed):
    KINDS[kind][0](folder, random.Random(f"{kind} {seed}"))


def recipe(kind, folder):
    path = f"{folder}/story.txt" if kind == "text" else folder
    _, more, model = KINDS[kind]
    return (f'[model]\n{model}\n[data]\nkind = "{kind}"\npath = "{path}"\n{more}\n[optim]\nname = "momentum"\nlr = 0.02\n\n'
            "[train]\nsteps = 2\nbatch = 4\nseed = 1\nkeep = 9\n")
