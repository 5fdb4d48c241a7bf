"""Hostile recipes and data files, some 300 of them: each is refused within seconds, in little memory, with exit code 2 and one clear
message. None ends in a signal, waits for a pipe, or fills the memory. The address space is limited, so what would grow without bound
fails here."""
import concurrent.futures, gzip, os, pathlib, re, resource, shutil, socket, struct, subprocess, sys, tempfile, unittest, zlib

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MEMORY = 2 << 30  # bytes of address space
INSTRUMENTED = "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ  # then it takes terabytes of it
SECONDS = 600     # for one case, on a busy machine; most take a few hundredths

TRAIN = "[train]\nsteps = 1\nbatch = 2\n"
IMAGES = "[data]\nkind = 'synthetic'\nmake = 'images'\nsamples = 64\n"
TOKENS = "[data]\nkind = 'synthetic'\nmake = 'tokens'\nsamples = 64\nshape = [16]\n"
MLP = "[model]\nname = 'mlp'\nhidden = [8]\n"


def limited():
    if not INSTRUMENTED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(words, cwd):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, errors="replace", cwd=cwd, stdin=subprocess.DEVNULL,
                          preexec_fn=limited, timeout=SECONDS)


class Cases:
    """Every case is a folder with recipe.toml in it, and what must occur in the message."""
    def __init__(self, root):
        self.root, self.list = pathlib.Path(root), []

    def add(self, name, recipe, says="", files={}, verb="check", words=(), make=None):
        folder = self.root / f"{len(self.list):03}-{re.sub('[^a-z0-9]+', '-', name.lower())}"
        folder.mkdir()
        if recipe is not None:
            (folder / "recipe.toml").write_bytes(recipe if isinstance(recipe, bytes) else recipe.encode())
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        if make:
            make(folder)
        extra = ["--run", str(folder / "run")] if verb == "train" else []
        self.list.append((name, [verb, "recipe.toml", *extra, *words], folder, says))


# --- recipes ---

def layers(*tables):
    return "[model]\nname = 'layers'\n" + "".join(f"[[model.layers]]\n{t}\n" for t in tables) + \
        "[[model.layers]]\ntype = 'flatten'\n[[model.layers]]\ntype = 'linear'\nout = 10\n"


def recipes(cases):
    # Every number of a recipe, where it must not be.
    most = 9223372036854775807
    wrong = [-1, -most - 1, most, 1e308, "'text'", "true", "nan", "[[[1]]]", "{a = 1}"]
    keys = {"train": [("batch", wrong + [0]), ("shards", wrong + [0]), ("keep", wrong + [0]), ("patience", wrong), ("log_every", wrong)],
            "data": [("samples", wrong + [0]), ("samples_test", wrong + [0]), ("classes", wrong + [0]), ("shape", [-1, 0, most, "'text'"]),
                     ("noise", [-1, 1e308, "'text'", "nan"]), ("limit", [-1, 1e308, "'text'"]), ("holdout", [-1, 1, 7, "'text'", "nan"])],
            "model": [("hidden", [-1, 0, most, 1e308, "'text'", "[[[1]]]"]), ("dropout", [-1, 1, 7, "nan", "'text'"])],
            "optim": [("lr", [-1, 1e308, "nan", "'text'"]), ("clip_norm", [-1, 1e308, "nan"])]}
    for table, lines in keys.items():
        for key, values in lines:
            for value in values:
                cases.add(f"{table}.{key} = {value}", MLP + IMAGES.replace("samples = 64\n", "") + TRAIN.replace("batch = 2\n", ""),
                          words=["--set", f"{table}.{key}={value}"])
    # Sizes that no machine has: by layer, by model, by batch.
    big = 1 << 24
    for t in ["type = 'upsample'\nfactor = 1048576", f"type = 'upsample'\nfactor = {most}", "type = 'conv2d'\nout = 8\npadding = 1048576",
              f"type = 'conv2d'\nout = {big}\nkernel = 28", "type = 'conv2d'\nout = 8\nkernel = 1048576\npadding = 1048576",
              "type = 'conv2d'\nout = 8\nstride = 0", "type = 'conv2d'\nout = 8\ndilation = 1048576", "type = 'conv2d'\nout = -1",
              "type = 'conv2d'\nout = 8\ngroups = 1048576", f"type = 'conv2d'\nout = {most}", "type = 'depthwise'\npadding = 1048576",
              "type = 'max_pool'\nkernel = 1048576", "type = 'max_pool'\nkernel = 0", "type = 'avg_pool'\npadding = 1048576",
              "type = 'reshape'\nshape = [16777216, 16777216]", "type = 'reshape'\nshape = [-1, -1]", "type = 'reshape'\nshape = [0, -1]",
              "type = 'reshape'\nshape = [0]", "type = 'reshape'\nshape = [1, 1, 1, 1, 1, 1, 1]", "type = 'concat'\naxis = 1048576",
              "type = 'lstm'\nhidden = 8\nlayers = 1048576", f"type = 'embedding'\nrows = {big}\nwidth = {big}", "type = 'attention'\nheads = 0",
              "type = 'dropout'\np = 1", "type = 'local_response_norm'\nsize = 0", "type = 'batch_norm'\nrate = 7"]:
        cases.add(f"layer {t}", layers(t) + IMAGES + TRAIN)
    up = "type = 'upsample'\nfactor = 256"
    cases.add("three upsample layers", layers(up, up, up) + IMAGES + TRAIN, "a tensor has at most")
    cases.add("three upsample layers in train", layers(up, up, up) + IMAGES + TRAIN, "a tensor has at most", verb="train")
    cases.add("two upsample layers", layers(*["type = 'upsample'\nfactor = 64"] * 2) + IMAGES + TRAIN, "this machine has")
    cases.add("a wide layer", layers("type = 'flatten'", f"type = 'linear'\nout = {big}", f"type = 'linear'\nout = {big}") + IMAGES + TRAIN)
    cases.add("many upsample layers", layers(*["type = 'upsample'\nfactor = 2"] * 60) + IMAGES + TRAIN, "a tensor has at most")
    cases.add("thirty thousand layers", "[model]\nlayers = [" + "{type = 'relu'}, " * 30000 + "]\n" + IMAGES + TRAIN, "more than 4096")
    cases.add("joined again and again", "[model]\nname = 'layers'\n" + "[[model.layers]]\ntype = 'flatten'\nname = 'l0'\n" + "".join(
        f"[[model.layers]]\ntype = 'concat'\nname = 'l{i + 1}'\ninputs = ['l{i}', 'l{i}']\n" for i in range(62)) + IMAGES + TRAIN)
    for model in ["name = 'mlp'\nhidden = [1048576, 1048576]", "name = 'mlp'\nhidden = [" + "64, " * 60000 + "]", "name = 'alexnet'\nhidden = 1048576",
                  "name = 'vgg11'\nwidth = 4096\nhidden = 1048576", "name = 'resnet18'\nwidth = 65536", "name = 'autoencoder'\nwidth = 1000000",
                  "name = 'densenet40'\ngrowth = 100000", "name = 'gan'\nlatent = 100000000"]:
        cases.add("model " + model[:50], f"[model]\n{model}\n" + IMAGES + TRAIN)
    for model in ["name = 'gpt'\nwidth = 65536\nlayers = 1024", "name = 'gpt'\nheads = 7", "name = 'gpt'\nlayers = 1000000", "name = 'lstm'\nhidden = 65536\nlayers = 64",
                  "name = 'lstm'\nembedding = 100000000"]:
        cases.add("model " + model[:50], f"[model]\n{model}\n" + TOKENS + TRAIN)
    for data in ["make = 'images'\nshape = [1, 100000, 100000]", "make = 'images'\nshape = [268435456, 268435456, 268435456]", "make = 'blobs'\nclasses = 100000000",
                 "make = 'tokens'\nshape = [268435456]", "make = 'images'\nshape = [3, 8192, 2048]\nclasses = 100", "make = 'nothing'"]:
        cases.add("data " + data, MLP + f"[data]\nkind = 'synthetic'\n{data}\n" + TRAIN)
    cases.add("huge batch", MLP + IMAGES.replace("64", "16777216") + "[train]\nsteps = 1\nbatch = 16777216\nshards = 1\n", "this machine has")
    cases.add("huge batch in train", MLP + IMAGES.replace("64", "16777216") + "[train]\nsteps = 1\nbatch = 16777216\nshards = 1\n",
              "this machine has", verb="train")
    cases.add("crop that grows", MLP + IMAGES + "transform = [{kind = 'crop', size = 1048576, pad = 1048576}]\n" + TRAIN)
    cases.add("endless", MLP + IMAGES.replace("64", "1000000000000") + "[train]\nepochs = 1000000000000\nbatch = 1\n", "steps")
    # What is no recipe.
    texts = {"empty": b"", "nul bytes": b"\0" * 1000, "not utf-8": b"title = '\xff\xfe'\n", "random": bytes(range(256)) * 40, "two megabytes": b"# x\n" * 600000,
             "brackets": b"a = " + b"[" * 100000, "closed brackets": b"a = " + b"[" * 5000 + b"]" * 5000, "braces": b"a = " + b"{a=" * 50000, "dots": b"a" + b".a" * 100000 + b" = 1\n",
             "tables": b"".join(b"[a%d]\n" % i for i in range(150000)), "a table in a table": b"[" + b".".join(b"a%d" % i for i in range(3000)) + b"]\n",
             "a long list": b"a = [" + b"1," * 300000 + b"]\n", "the same key": b"[train]\nbatch = 1\nbatch = 2\n", "an open text": b"title = 'abc", "a date": b"title = 1979-05-27\n",
             "a long key": b"k" * 900000 + b" = 1\n", "a huge number": b"title = " + b"9" * 900000 + b"\n", "only equals": b"=" * 1000, "unknown tables": b"".join(b"[x%d]\n" % i for i in range(1000))}
    for name, text in texts.items():
        cases.add(name, text)
    cases.add("extends itself", "extends = 'recipe.toml'\n", "extends")
    cases.add("extends in a circle", "extends = 'b.toml'\n", "extends", {"b.toml": b"extends = 'c.toml'\n", "c.toml": b"extends = 'b.toml'\n"})
    cases.add("extends in a circle under other names", "extends = './a/../recipe.toml'\n", "extends", {"a/x": b""})
    cases.add("a chain of forty", "extends = '0.toml'\n", "chain", {f"{i}.toml": f"extends = '{i + 1}.toml'\n".encode() for i in range(40)})
    cases.add("extends a number", "extends = 7\n", "extends")
    cases.add("extends nothing", "extends = 'absent.toml'\n", "absent.toml")
    cases.add("extends a folder", "extends = 'folder'\n", "folder", {"folder/x": b""})
    cases.add("extends a pipe", "extends = 'pipe'\n", "is a pipe", make=lambda d: os.mkfifo(d / "pipe"))
    cases.add("extends a device", "extends = '/dev/zero'\n", "is a device")
    cases.add("extends a link to a device", "extends = 'link'\n", "is a device", make=lambda d: os.symlink("/dev/zero", d / "link"))
    cases.add("extends a huge file", "extends = 'huge'\n", "bytes", make=lambda d: os.truncate(os.open(d / "huge", os.O_CREAT | os.O_WRONLY), 1 << 40))
    cases.add("a pipe as the recipe", None, "is a pipe", make=lambda d: os.mkfifo(d / "recipe.toml"))
    cases.add("a pipe as the recipe of train", None, "is a pipe", make=lambda d: os.mkfifo(d / "recipe.toml"), verb="train")
    cases.add("a device as the recipe", None, "is a device", make=lambda d: os.symlink("/dev/zero", d / "recipe.toml"))
    cases.add("a folder as the recipe", None, "folder", make=lambda d: (d / "recipe.toml").mkdir())
    cases.add("a socket as the recipe", None, "", make=lambda d: socket_at(d / "recipe.toml"))
    # A graph of workers in a file.
    graph = MLP + IMAGES + TRAIN + "[exchange]\nname = 'neighbour'\ngraph = 'file'\nfile = '{}'\n[rule]\nname = 'neighbour_mean'\n"
    cases.add("a graph in a pipe", graph.format("pipe"), "is a pipe", make=lambda d: os.mkfifo(d / "pipe"))
    cases.add("a graph in a device", graph.format("/dev/zero"), "is a device")
    cases.add("a graph in a folder", graph.format("."), "")
    cases.add("a huge graph", graph.format("huge"), "", make=lambda d: os.truncate(os.open(d / "huge", os.O_CREAT | os.O_WRONLY), 1 << 40))
    cases.add("a graph of noise", graph.format("noise"), "", {"noise": bytes(range(256)) * 10})


def socket_at(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path.name)
    finally:
        os.chdir(here)


# --- data ---

def packed(head, zeros):
    """Gzipped: `head`, then so many zeros. A megabyte of them is packed once and repeated, as deflate allows."""
    c = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = c.compress(head) + c.flush(zlib.Z_FULL_FLUSH)
    one = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = one.compress(b"\0" * (1 << 20)) + one.flush(zlib.Z_FULL_FLUSH)
    end = zlib.compressobj(9, zlib.DEFLATED, -15)
    body += block * (zeros >> 20) + end.compress(b"\0" * (zeros & 0xFFFFF)) + end.flush()
    return body, len(head) + zeros


def gz(head, zeros):
    body, size = packed(head, zeros)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + body + struct.pack("<II", 0, size & 0xFFFFFFFF)


def idx(kind, *extents, content=b""):
    return bytes([0, 0, kind, len(extents)]) + b"".join(struct.pack(">I", e & 0xFFFFFFFF) for e in extents) + content


def npy(descr, shape, content=b"", version=1, header=None):
    text = header if header is not None else f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    text = text.encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + content


def zip_of(name, packed_bytes, unpacked, method=8, crc=0, entries=1, declared_entries=None, name_length=None):
    sizes = struct.pack("<III", crc, len(packed_bytes) & 0xFFFFFFFF, unpacked & 0xFFFFFFFF)
    n = name.encode()
    length = len(n) if name_length is None else name_length
    local = b"PK\3\4" + struct.pack("<HHHI", 20, 0, method, 0) + sizes + struct.pack("<HH", len(n), 0) + n
    entry = b"PK\1\2" + struct.pack("<HHHHI", 20, 20, 0, method, 0) + sizes + struct.pack("<HHHHHII", length, 0, 0, 0, 0, 0, 0) + n
    count = entries if declared_entries is None else declared_entries
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count & 0xFFFF, count & 0xFFFF, len(entry) * entries, len(local) + len(packed_bytes), 0)
    return local + packed_bytes + entry * entries + end


def tar(*members):
    """Of (name, content, changes): fields of the header by offset."""
    out = b""
    for name, content, *changes in members:
        h = bytearray(512)
        h[0:len(name)] = name.encode()
        h[100:108], h[124:136], h[136:148] = b"0000644\0", b"%011o\0" % len(content), b"%011o\0" % 0
        h[156:157], h[257:265] = b"0", b"ustar\00000"
        for at, text in (changes[0].items() if changes else ()):
            h[at:at + len(text)] = text
        h[148:156] = b" " * 8
        h[148:156] = b"%06o\0 " % sum(h)
        out += bytes(h) + content + b"\0" * (-len(content) % 512)
    return out + b"\0" * 1024


def png(width, height, colour=2, rows=b"", depth=8, chunks=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)) + chunks + \
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def jpeg(width, height):
    return b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xc0\0\x11\x08" + struct.pack(">HH", height, width) + b"\3\1\x22\0\2\x11\0\3\x11\0\xff\xd9"


def data(cases):
    def recipe(table):
        return MLP + f"[data]\n{table}\n" + TRAIN + "evaluate = false\n"

    pair = recipe("kind = 'idx'\nimages = 'x'\nlabels = 'y'")
    x, y = idx(8, 20, 4, 4, content=bytes(320)), idx(8, 20, content=bytes(range(10)) * 2)
    assert run(["check", write(cases.root / "good", pair, {"x": x, "y": y})], cases.root / "good").returncode == 0

    def idx_case(name, says="", x=x, y=y, **more):
        cases.add("idx " + name, pair, says, {"x": x, "y": y}, **more)
    idx_case("bomb", "as the header declares", x=gz(idx(8, 20, 28, 28), 5 << 30))
    idx_case("bomb in train", "as the header declares", x=gz(idx(8, 20, 28, 28), 5 << 30), verb="train")
    idx_case("bomb of labels", "as the header declares", y=gz(idx(8, 20), 5 << 30))
    idx_case("bomb with a truthful header", "as there are labels", x=gz(idx(8, 5 << 20, 32, 32), 5 << 30))
    idx_case("bomb without a header", "", x=gz(b"garbage", 1 << 30))
    idx_case("gzip that ends early", "", x=gz(idx(8, 10, 28, 28), 7840)[:60])
    idx_case("gzip with a wrong checksum", "", x=gz(idx(8, 20, 4, 4), 320))
    idx_case("of gzip's magic alone", "", x=b"\x1f\x8b")
    for extents in [(0xFFFFFFFF,) * 3, (0xFFFFFFFF,) * 6, (0, 4, 4), (20, 0, 4), (20, 4, 0xFFFFFFFF), (21, 4, 4), (19, 4, 4), (1,)]:
        idx_case(f"extents {extents}", "", x=idx(8, *extents, content=bytes(320)))
    for kind in (0, 7, 10, 255):
        idx_case(f"type {kind}", "an IDX type", x=idx(kind, 20, 4, 4, content=bytes(320)))
    idx_case("of seven dimensions", "dimensions", x=idx(8, *[2] * 7, content=bytes(128)))
    idx_case("of no dimension", "dimensions", x=bytes([0, 0, 8, 0]))
    idx_case("empty", "", x=b"")
    idx_case("one byte", "", x=b"\0")
    idx_case("label 77", "labels 0-9 and one 77, in row 13", y=idx(8, 20, content=bytes(range(10)) + bytes([0, 1, 2, 77, 4, 5, 6, 7, 8, 9])))
    label = struct.pack(">20i", *[100000000 if i == 7 else i % 10 for i in range(20)])
    idx_case("label 100000000", "and one 100000000, in row 7", y=idx(12, 20, content=label))
    idx_case("label 100000000 in train", "and one 100000000, in row 7", y=idx(12, 20, content=label), verb="train")
    idx_case("label 100000000 that is meant", "this machine has", y=idx(12, 20, content=label), words=["--set", "data.classes=100000001", "--set", "model.hidden=[64]"])
    idx_case("label -1", "a class of 0 or more", y=idx(12, 20, content=struct.pack(">20i", *[-1] * 20)))
    idx_case("label 2147483647", "2147483647", y=idx(12, 20, content=struct.pack(">20i", *([0] * 19 + [2147483647]))))
    idx_case("label beyond the classes", "a class from 0 to 4", words=["--set", "data.classes=5"])
    idx_case("labels for others", "labels", y=idx(8, 19, content=bytes(19)))
    specials = {"pipe": lambda p: os.mkfifo(p), "device": lambda p: os.symlink("/dev/zero", p), "folder": lambda p: p.mkdir(), "socket": socket_at,
                "nothing": lambda p: None, "loop": lambda p: os.symlink(p.name, p)}
    kinds = {"idx": ("kind = 'idx'\nimages = 'x'", "x"), "npy": ("kind = 'npy'\nx = 'x.npy'\ny = 'x.npy'", "x.npy"), "npz": ("kind = 'npz'\npath = 'x.npz'", "x.npz"),
             "csv": ("kind = 'csv'\npath = 'x.csv'", "x.csv"), "tar": ("kind = 'tar'\npath = 'x.tar'", "x.tar"), "text": ("kind = 'text'\npath = 'x.txt'", "x.txt"),
             "cifar10": ("kind = 'cifar10'\npath = '.'", "data_batch_1.bin"), "images": ("kind = 'images'\npath = 'p'", "p/a/1.png")}
    for kind, (table, path) in kinds.items():
        for name, make in specials.items():
            def there(folder, make=make, path=path):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                make(folder / path)
            cases.add(f"{kind} from a {name}", recipe(table), {"pipe": "is a pipe", "device": "is a device"}.get(name, ""), make=there)
    for verb in ("train",):
        cases.add("idx from a pipe in train", recipe(kinds["idx"][0]), "is a pipe", make=lambda d: os.mkfifo(d / "x"), verb=verb)

    table = recipe("kind = 'npy'\nx = 'x.npy'\ny = 'y.npy'")
    good = npy("|u1", "(20,)", bytes(range(10)) * 2)

    def npy_case(name, says="", x=npy("<f4", "(20, 4)", bytes(320)), y=good):
        cases.add("npy " + name, table, says, {"x.npy": x, "y.npy": y})
    npy_case("bomb", "as the header declares", x=gz(npy("<f4", "(20, 4)"), 5 << 30))
    npy_case("header of 4 GiB", "at most 64 KiB", x=b"\x93NUMPY\2\0" + struct.pack("<I", 0xFFFFFFFF) + b"{")
    for shape in ["(18446744073709551615, 18446744073709551615)", "(4294967296, 4294967296)", "(0, 4)", "(20, 0)", "(-1, 4)", "()", "(" + "1, " * 20000 + ")",
                  "(20, 4, 1, 1, 1, 1, 1)", "(99999999999999999999999,)", "'20'", "(20 4)", "(20, 5)"]:
        npy_case("shape " + shape[:40], "", x=npy("<f4", shape, bytes(320)))
    for descr in ["|O", "<f2", "<c8", "<U7", "", "<", "x" * 1000, "|V8"]:
        npy_case("descr " + descr[:10], "", x=npy(descr, "(20, 4)", bytes(320)))
    npy_case("of records", "", x=npy("", "", b"", header="{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (20,), }"))
    npy_case("that nests", "", x=npy("", "", b"", header="{'descr': " + "(" * 30000 + "}"))
    npy_case("with pickled objects", "", x=npy("|O", "(1,)", b"\x80\x03cos\nsystem\n"))
    npy_case("label 77", "set classes = 78", y=npy("|u1", "(20,)", bytes(range(10)) + bytes(9) + b"\x4d"))
    npy_case("label 2**63", "", y=npy("<u8", "(20,)", b"\0" * 152 + struct.pack("<Q", 1 << 63)))
    npy_case("label -5", "", y=npy("<i8", "(20,)", b"\0" * 152 + struct.pack("<q", -5)))

    table = recipe("kind = 'npz'\npath = 'x.npz'")
    def npz_case(name, content, says=""):
        cases.add("npz " + name, table, says, {"x.npz": content})
    body, size = packed(npy("<f4", "(20, 4)"), 1 << 30)
    npz_case("bomb", zip_of("x.npy", body, size), "")
    body, size = packed(npy("<f4", "(4096, 65536)"), 1 << 30)
    npz_case("bomb with a truthful header", zip_of("x.npy", body, size), "")
    npz_case("that claims much", zip_of("x.npy", body[:1000], 1 << 31), "")
    npz_case("that claims little", zip_of("x.npy", body, 100), "")
    npz_case("of sixty thousand entries", zip_of("x.npy", b"abc", 3, 0, entries=60000), "")
    npz_case("of more entries than there are", zip_of("x.npy", b"abc", 3, 0, declared_entries=65000), "entries")
    npz_case("with a long name", zip_of("x.npy", b"abc", 3, 0, name_length=65535), "")
    npz_case("with an unknown method", zip_of("x.npy", b"abc", 3, 14), "")
    npz_case("with a wrong checksum", zip_of("x.npy", npy("<f4", "(1, 1)", b"abcd"), len(npy("<f4", "(1, 1)", b"abcd")), 0, crc=7), "checksum")
    npz_case("that is a comment", b"PK\5\6" + bytes(18), "")
    npz_case("of zeros", bytes(100000), "")

    table = recipe("kind = 'csv'\npath = 'x.csv'")
    def csv_case(name, content, says="", words=()):
        cases.add("csv " + name, table, says, {"x.csv": content}, words=words)
    csv_case("with a label that is not UTF-8", b"a,label\n" + b"1,x\n2,<\xf59\x91\n" * 40, "not UTF-8")
    csv_case("of commas", b"," * (20 << 20), "cells on line 1")
    csv_case("of a header of two million columns", b",".join(b"a%d" % i for i in range(2000000)) + b"\n", "cells on line 1")
    csv_case("bomb", gz(b"a,b\n", 3 << 30), "unpacked bytes")
    csv_case("with a huge cell", b"a,b\n1," + b"9" * (8 << 20) + b"\n", "a cell of at most")
    csv_case("with an open quote", b'a,b\n1,"' + b"x\n" * 100000, "closing quote")
    csv_case("with a huge quoted cell", b'a,b\n1,"' + b'""' * (8 << 20) + b'"\n', "a cell of at most")
    csv_case("of one line", b"a,b\n", "at least one row")
    csv_case("of newlines", b"\n" * 1000000, "at least one row")
    csv_case("of nul bytes", bytes(1000000), "")
    csv_case("with rows of other lengths", b"1,2\n1,2,3\n", "cells on line 2")
    csv_case("with infinite numbers", b"a,label\ninf,1\n", "a number on line 2")
    csv_case("with numbers beyond all numbers", b"a,label\n1e999,1\n", "a number on line 2")
    csv_case("with label 900", b"a,label\n" + b"".join(b"1,%d\n" % (900 if i == 50 else i % 3) for i in range(60)), "and one 900, in row 50")
    csv_case("with label 1e9", b"a,label\n1,0\n1,1000000000\n", "", words=["--set", "data.task=classify"])
    csv_case("with a label that is no class", b"a,label\n1,0\n1,1.5\n", "a class", words=["--set", "data.task=classify"])
    csv_case("of two gigabytes of nothing", b"", "", words=[])

    table = recipe("kind = 'tar'\npath = 'x.tar'\nlength = 4")
    def tar_case(name, content, says=""):
        cases.add("tar " + name, table, says, {"x.tar": content})
    two = [("1.txt", b"abcd"), ("1.cls", b"0"), ("2.txt", b"abcd"), ("2.cls", b"1")]
    tar_case("with class 100000000", tar(*two, ("3.txt", b"abcd"), ("3.cls", b"100000000")), "set classes = 100000001")
    for text in (b"-1", b"x", b"", b"99999999999999999999", b"1 2", b"1" * 100):
        tar_case(f"with class {text[:9]}", tar(*two, ("3.txt", b"abcd"), ("3.cls", text)), "a class")
    tar_case("with a huge size", tar(("1.txt", b"abcd", {124: b"77777777777\0"})), "a size of at most")
    tar_case("with a huge binary size", tar(("1.txt", b"abcd", {124: b"\x80" + b"\xff" * 11})), "")
    tar_case("with a negative size", tar(("1.txt", b"abcd", {124: b"\xff" * 12})), "a size")
    tar_case("with a size in words", tar(("1.txt", b"abcd", {124: b"many\0"})), "a size")
    tar_case("of links", tar(("1.txt", b"", {156: b"2", 157: b"/etc/passwd"}), ("1.cls", b"0")), "a .png, .jpg, .npy or .txt")
    tar_case("of hard links", tar(("1.txt", b"", {156: b"1", 157: b"../../etc/passwd"}), ("1.cls", b"0")), "a .png, .jpg, .npy or .txt")
    tar_case("of sparse files", tar(("1.txt", b"", {156: b"S", 483: b"77777777777\0"}), ("1.cls", b"0")), "a .png, .jpg, .npy or .txt")
    tar_case("of devices", tar(("1.txt", b"", {156: b"3"}), ("1.cls", b"0")), "a .png, .jpg, .npy or .txt")
    tar_case("with a long name of a gigabyte", tar(("L", b"x" * 100, {156: b"L", 124: b"07777777777\0"})), "")
    tar_case("with a long name", tar(("L", b"x" * 100000, {156: b"L"}), *two), "a name of at most 64 KiB")
    tar_case("with a wrong pax record", tar(("p", b"99999999999999999999 path=x\n", {156: b"x"}), *two), "length key=value")
    tar_case("with a pax size", tar(("p", b"27 size=99999999999999999\n", {156: b"x"}), *two), "")
    tar_case("that ends early", tar(*two)[:700], "")
    tar_case("of zeros", bytes(10240), "no sample")
    tar_case("of noise", bytes(range(256)) * 40, "")
    tar_case("with a picture that is none", tar(("1.png", b"abcd"), ("1.cls", b"0")), "neither a PNG nor a JPEG")
    tar_case("with an array that is none", tar(("1.npy", b"abcd"), ("1.cls", b"0")), "")
    tar_case("with a second input", tar(("1.png", b"x"), ("1.txt", b"x"), ("1.cls", b"0")), "one input")

    table = recipe("kind = 'images'\npath = 'p'")
    def picture_case(name, content, says=""):
        cases.add("picture " + name, table, says, {"p/a/1.png": content})
    for width, height in [(0, 0), (0xFFFFFFFF, 1), (1, 0x7FFFFFFF), (65535, 65535), (16385, 1), (16384, 16384)]:
        picture_case(f"png of {width} x {height}", png(width, height), "")
    picture_case("png without rows", png(8, 8), "")
    picture_case("png of an unknown colour", png(8, 8, colour=5), "")
    picture_case("png of depth 3", png(8, 8, depth=3), "")
    picture_case("png with a profile that is a bomb", png(8, 8, chunks=struct.pack(">I", 0x7FFFFFFF) + b"iCCP"), "")
    picture_case("png cut off", png(8, 8, rows=(b"\0" + bytes(24)) * 8)[:60], "")
    for width, height in [(65535, 65535), (0, 0), (16385, 1), (100, 100)]:
        picture_case(f"jpeg of {width} x {height}", jpeg(width, height), "")
    picture_case("of two bytes", b"\xff\xd8", "")
    picture_case("of nothing", b"", "neither a PNG nor a JPEG")
    cases.add("no picture", table, "", {"p/a/1.txt": b""})
    cases.add("no class", table, "", {"p/x": b""})

    def text_case(name, content, says="", more="", model="[model]\nname = 'gpt'\nwidth = 8\nlayers = 1\nheads = 1\n"):
        cases.add("text " + name, model + f"[data]\nkind = 'text'\npath = 'x.txt'\n{more}\n" + TRAIN + "evaluate = false\n", says, {"x.txt": content})
    text_case("that is not UTF-8", b"abc\xff\xfe" * 1000, "expected UTF-8")
    text_case("of overlong characters", b"\xc0\x80" * 1000, "expected UTF-8")
    text_case("of half characters", b"\xed\xa0\x80" * 1000, "expected UTF-8")
    text_case("that ends inside a character", b"a" * 1000 + b"\xe2\x82", "expected UTF-8")
    text_case("that is empty", b"", "")
    text_case("that is too short", b"abc", "too few")
    text_case("bomb", gz(b"abc", 3 << 30), "unpacked bytes")
    text_case("with a window as long as a book", b"abc" * 1000, "too few", "length = 1048576")
    text_case("with endless windows", b"abc" * 1000, "samples", "samples = 9223372036854775807")
    text_case("with very many streams", b"abc" * 1000, "", "windows = 'streams'\nstreams = 1048576")
    cifar = recipe("kind = 'cifar10'\npath = '.'")
    batches = {f"data_batch_{i}.bin": bytes(3073) for i in range(2, 6)}
    for name, content in {"cut off": bytes(3072), "with class 10": b"\x0a" + bytes(3072), "that is empty": b"", "bomb": gz(b"", 5 << 30)}.items():
        cases.add("cifar " + name, cifar, "", {**batches, "data_batch_1.bin": content})


def write(folder, recipe, files):
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(recipe)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return "recipe.toml"


class HostileFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp()
        cls.cases = Cases(cls.root)
        recipes(cls.cases)
        data(cls.cases)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def test_each_is_refused_with_one_clear_message(self):
        self.assertGreater(len(self.cases.list), 200)
        wrong = []

        def judge(case):
            name, words, folder, says = case
            try:
                done = run(words, folder)
            except subprocess.TimeoutExpired:
                return f"{name}: no answer within {SECONDS} s"
            text = done.stderr.strip()
            if done.returncode != 2:
                return f"{name}: exit {done.returncode}: {text[:500]} {done.stdout[:200]}"
            if says not in text:
                return f"{name}: expected {says!r} in: {text[:500]}"
            if not text or len(text) > 10000 or re.search(r"std::|bad_alloc|vector::|terminate|basic_string|out of memory|Segmentation", text):
                return f"{name}: no clear message of {len(text)} characters: {text[:500]}"
            return None
        with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
            wrong = [complaint for complaint in pool.map(judge, self.cases.list) if complaint]
        print(f"{len(self.cases.list)} hostile files and recipes, {len(wrong)} not refused as they should be")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
