"""Data files that lie about their sizes, unpack to far more than they say, or are no data at all. Each maker writes the
files into a folder and returns (lines of [data], refused): `refused` if no program could train on it."""
import io
import os
import struct
import tarfile
import zipfile

import formats
from data_sets import write

SIZES = [0, 1, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1]
BOMB_MIB = 1024
bombs = {}


def bomb(prefix):
    """A .gz of zeros; made once."""
    if prefix not in bombs:
        bombs[prefix] = formats.gzip_of_zeros(prefix, BOMB_MIB)
    return bombs[prefix]


def mutated(content, dice):
    """A valid file with a few bytes changed, most of them in its header."""
    content = bytearray(content)
    for _ in range(dice.randrange(1, 5)):
        place = dice.randrange(min(len(content), 200) if dice.random() < 0.7 else len(content))
        how = dice.randrange(4)
        if how == 0:
            content[place] ^= 1 << dice.randrange(8)
        elif how == 1:
            content[place:place + 4] = dice.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4), b"\x80\0\0\0"])
        elif how == 2:
            del content[place:place + dice.randrange(1, 50)]
        else:
            content[place:place] = dice.randbytes(dice.randrange(1, 50))
        content = content or bytearray(b"x")
    return bytes(content)


def idx_files(folder, images, labels, suffix=""):
    for split in ("train", "t10k"):
        write(f"{folder}/{split}-images-idx3-ubyte{suffix}", images)
        write(f"{folder}/{split}-labels-idx1-ubyte{suffix}", labels)
    return f'kind = "idx"\npath = "{folder}"\n'


def idx_headers(folder, dice):
    shape = [dice.choice([10, *SIZES]) for _ in range(dice.choice([1, 3, 3, 3, 4, 255]))]
    images = formats.idx(shape, bytes(1000), kind=dice.choice([8, 8, 8, 9, 13, 14, 0, 255]))
    return idx_files(folder, images, formats.idx((dice.choice([10, *SIZES]),), bytes(10))), True


def idx_mutated(folder, dice):
    images, labels = formats.idx((10, 8, 8), dice.randbytes(640)), formats.idx((10,), bytes(i % 2 for i in range(10)))
    if dice.random() < 0.5:
        return idx_files(folder, mutated(images, dice), labels), None
    return idx_files(folder, images, mutated(labels, dice)), None


def idx_bomb(folder, dice):
    if dice.random() < 0.5:
        return idx_files(folder, bomb(formats.idx((10, 8, 8), b"")), formats.idx((10,), bytes(10)), ".gz"), True
    shape = (2**20, 2**10, 1)  # honest about what it unpacks to, which is too much for ten labels
    return idx_files(folder, bomb(formats.idx(shape, b"")), bomb(formats.idx((10,), bytes(10))), ".gz"), True


def labels_jump(folder, dice):
    """One label far beyond the others: to be asked back, or refused; never so many classes in silence."""
    labels = [i % 10 for i in range(200)]
    strange = dice.choice([77, 255, 1000, 100_000_000, 2**31 - 1, 2**62, -1, -2**63])
    if 0 <= strange < 256 and dice.random() < 0.5:
        labels[120] = strange
        return idx_files(folder, formats.idx((200, 8, 8), bytes(12800)), formats.idx((200,), bytes(labels))), True
    labels[120] = strange
    raw = b"".join(struct.pack("<q", label) for label in labels)
    for split in ("train", "test"):
        write(f"{folder}/{split}_x.npy", formats.npy("<f4", (200, 4), bytes(3200)))
        write(f"{folder}/{split}_y.npy", formats.npy("<i8", (200,), raw))
    return f'kind = "npy"\npath = "{folder}"\n', True


def npy_headers(folder, dice):
    number = lambda: dice.choice([*SIZES, 2**40, 2**62, 2**63, 2**64, -1])
    shape = tuple(number() for _ in range(dice.choice([1, 2, 3, 9, 1000])))
    kind = dice.choice(["<f4", ">f8", "<i8", "|O", "|S9", "<c16", "<f2", "|V1000000000", "<f4", "|b1", "x" * 1000])
    header = dice.choice([None, "{" * 5000, "{'descr': '<f4'}", "[]", "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}",
                          "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "(" * 10000])
    write(f"{folder}/x.npy", formats.npy(kind, shape, bytes(400), header=header))
    write(f"{folder}/y.npy", formats.npy("<i8", (10,), bytes(80)))
    return f'kind = "npy"\npath = "{folder}"\nx = "x.npy"\ny = "y.npy"\nholdout = 0.2\n', True


def npy_mutated(folder, dice):
    write(f"{folder}/x.npy", mutated(formats.npy("<f4", (20, 4), bytes(320)), dice))
    write(f"{folder}/y.npy", formats.npy("<i8", (20,), b"".join(struct.pack("<q", i % 2) for i in range(20))))
    return f'kind = "npy"\npath = "{folder}"\nx = "x.npy"\ny = "y.npy"\nholdout = 0.2\n', None


def npz(folder, dice):
    """Archives: bombs, sizes that lie, names out of the folder."""
    out = io.BytesIO()
    how = dice.choice(["bomb", "names", "mutated", "mutated", "mutated", "twice"])
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        x = formats.npy("<f4", (20, 4), bytes(320))
        if how == "bomb":
            x += bytes(300 << 20)
        names = {"names": ["../../x.npy", "/x.npy"], "twice": ["x.npy", "z.npy"]}.get(how, ["x.npy"])
        for name in names:
            archive.writestr(name, x)
        archive.writestr("y.npy", formats.npy("<i8", (20,), b"".join(struct.pack("<q", i % 2) for i in range(20))))
    content = out.getvalue().replace(b"z.npy", b"x.npy")  # zipfile itself warns of a name that comes twice
    write(f"{folder}/a.npz", mutated(content, dice) if how == "mutated" else content)
    return f'kind = "npz"\npath = "{folder}/a.npz"\nholdout = 0.2\n', True if how in ("bomb", "names") else None


def csv(folder, dice):
    rows = [f"{i},{i % 3},{'xy'[i % 2]}" for i in range(20)]
    how = dice.randrange(12)
    text = ["", "\n" * 1000, "a", "a,b\n" + '"' + "q" * 1000, "\0" * 1000, ",".join(["1"] * 200_000),
            "a,b,label\n" + "\n".join(rows) + "\n1",
            "a,b,label\n1e400,nan,x\n" + "\n".join(rows), "a,b,label\n" + "\n".join(f"1,2,c{i}" for i in range(20000)),
            "a,a,label\n" + "\n".join(rows), "a,label\n" + "\n".join(f"1,{i * 10**7}" for i in range(20)),
            "a,b,label\n" + "\n".join(f"1,{'9' * 4000},x" for i in range(20))][how].encode()
    if dice.random() < 0.4:
        text = mutated(("a,b,label\n" + "\n".join(rows)).encode(), dice)
        how = None
    elif dice.random() < 0.1:
        text, how = ("a,b,label\n" + "\n".join(rows)).encode("utf-16"), 0
    write(f"{folder}/a.csv", text)
    return f'kind = "csv"\npath = "{folder}/a.csv"\nholdout = 0.2\n', True if how is not None and how < 6 else None


def jpeg(width, height):
    """A header that says so much, and nothing behind it."""
    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\0"
    return b"\xff\xd8\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame + b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + b"\xff\xd9"


def hostile_picture(dice):
    how = dice.randrange(8)
    if how == 0:
        side = lambda: dice.choice([0, 1, 2**15, 65535, 2**20, 2**31 - 1, 2**31, 2**32 - 1])
        return formats.png(8, 8, claim=(side(), side()))
    if how == 1:
        return formats.png(8, 8, depth=dice.choice([0, 1, 3, 16, 255]), colour=dice.choice([1, 2, 3, 4, 6, 99]))
    if how == 2:
        return jpeg(dice.choice([0, 1, 65535]), dice.choice([0, 1, 65535]))
    if how == 3:
        return formats.png_bomb(dice.choice([8000, 20000]))
    if how == 4:
        return dice.choice([b"", b"\x89PNG", b"\xff\xd8", dice.randbytes(500), b"GIF89a", b"BM" + bytes(60)])
    return mutated(formats.noise_png(dice), dice)


def images(folder, dice):
    for split in ("train", "test"):
        for number in range(8):
            write(f"{folder}/{split}/{'ab'[number % 2]}/{number}.png", formats.noise_png(dice))
    how = dice.randrange(8)
    victim = f"{folder}/train/a/0.png"
    if how == 0:
        os.unlink(victim), os.mkfifo(victim)
    elif how == 1:
        os.unlink(victim), os.symlink("/dev/zero", victim)
    elif how == 2:
        os.symlink("..", f"{folder}/train/a/loop")
    else:
        write(victim, hostile_picture(dice))
    size = dice.choice(["", "size = 8\n", "size = 8\n", f"size = {dice.choice([0, -1, 2**20, 2**31, 2**62])}\n"])
    return f'kind = "images"\npath = "{folder}"\n{size}channels = 1\n', True if how < 2 else None


def tar(folder, dice):
    """Archives with names out of the folder, links, devices, and sizes that lie."""
    good = []
    for number in range(8):
        good += [(f"{number}.png", formats.noise_png(dice)), (f"{number}.cls", str(number % 2).encode())]
    how = dice.randrange(8)
    if how == 0:
        names = ["../../x.png", "/tmp/x.png", "a/../../x.png", "\n.png", "x" * 5000 + ".png", ".png"]
        good[0] = (dice.choice(names), good[0][1])
    elif how == 1:
        info = tarfile.TarInfo("0.png")
        info.type = dice.choice([tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
        info.linkname = "/etc/passwd"
        good[0] = (info, b"")
    elif how == 2:
        good[1] = ("0.cls", dice.choice([b"100000000", b"-1", b"9" * 500, b"", b"\0", b"77", b"1e9", b"nan"]))
    elif how == 3:
        good[0] = ("0.png", hostile_picture(dice))
    content = bytearray(formats.tar(good))
    if how >= 4:
        sizes = [b"77777777777\0", b"\x80" + bytes(2) + b"\xff" * 9, b"\xff" * 12, b"00000000000\0", b"xxxxxxxxxxxx",
                 b"-0000000001\0"]
        content[124:136] = dice.choice(sizes)
        if dice.random() < 0.8:  # with a checksum that fits
            content[148:156] = b" " * 8
            content[148:156] = b"%06o\0 " % sum(content[:512])
        if how == 7:
            del content[dice.randrange(len(content)):]
    write(f"{folder}/a.tar", bytes(content))
    return f'kind = "tar"\npath = "{folder}/a.tar"\nsize = 8\nchannels = 1\nholdout = 0.25\n', None


def text(folder, dice):
    content = dice.choice([b"", b"a", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" * 9, dice.randbytes(4000), bytes(4000), b"\xff\xfe" * 999,
                           "".join(chr(0x100 + i) for i in range(20000)).encode(), b"\xed\xa0\x80" * 500])
    write(f"{folder}/a.txt", content)
    length = dice.choice([8, 8, 0, -1, 2**20, 2**40, 2**62])
    return f'kind = "text"\npath = "{folder}/a.txt"\nlength = {length}\nlevel = "{dice.choice(["byte", "character"])}"\n', None


def no_file(folder, dice):
    """A pipe, a device, a folder or terabytes of nothing in place of a file."""
    kind = dice.choice(["csv", "npz", "text", "tar", "npy", "idx"])
    names = {"npy": ["x.npy", "y.npy"], "idx": ["i.idx", "l.idx"]}.get(kind, [f"a.{kind}"])
    for name in names:
        path, how = f"{folder}/{name}", dice.randrange(5)
        if how == 0:
            os.mkfifo(path)
        elif how == 1:
            os.symlink("/dev/zero", path)
        elif how == 2:
            os.makedirs(path)
        elif how == 3:
            os.symlink(name, path)
        else:
            starts = {"npy": formats.npy("<f4", (2**30, 4), b""), "idx": formats.idx((2**31 - 1, 2, 2), b"")}
            write(path, starts.get(kind, b"1,2\n"))
            os.truncate(path, dice.choice([1 << 33, 1 << 40]))
    more = {"npy": f'path = "{folder}"\nx = "x.npy"\ny = "y.npy"\n',
            "idx": f'path = "{folder}"\nimages = "i.idx"\nlabels = "l.idx"\n'}
    return f'kind = "{kind}"\n' + more.get(kind, f'path = "{folder}/{names[0]}"\n') + "holdout = 0.2\n", True


# test: (item, maker)
MAKERS = {
    "data: idx headers": (6, idx_headers), "data: idx changed": (6, idx_mutated), "data: gzip bombs": (6, idx_bomb),
    "data: a label far beyond the others": (6, labels_jump), "data: npy headers": (6, npy_headers),
    "data: npy changed": (6, npy_mutated), "data: npz": (6, npz), "data: csv": (6, csv), "data: pictures": (6, images), "data: tar": (6, tar), "data: text": (6, text),
    "data: no file": (4, no_file),
}
