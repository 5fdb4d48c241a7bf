"""Recipes and cluster files that nobody sensible writes. Each maker returns (text, refused): `refused` if no program
could train it; None if it may be valid."""
import os

SIZES = [0, -1, 1000, 46341, 65521, 2**16, 2**20, 2**24, 2**31 - 1, 2**31, 2**32, 2**33 + 1, 2**40, 2**53, 2**62, 2**63 - 1, -2**63]
HUGE = [n for n in SIZES if n >= 2**31]
ODD = ["nan", "inf", "-inf", "1e308", "-1e308", "5e-324", "-1", "0", "0.0", "1e400", "99999999999999999999", "''", '"x"',
       "[]", "{}", "true", "1979-05-27", "[1, 2]", "[[1]]", '[{ a = 1 }]', '"' + "x" * 5000 + '"']

HEAD = 'title = "x"\n'
MODEL = '[model]\nname = "mlp"\nhidden = [8]\n'
DATA = '[data]\nkind = "synthetic"\nmake = "blobs"\nshape = [4]\nsamples = 16\nsamples_test = 4\nclasses = 2\n'
OPTIM = '[optim]\nname = "momentum"\nlr = 0.1\n'
TRAIN = "[train]\nsteps = 1\nbatch = 4\nseed = 1\n"
IMAGES = '[data]\nkind = "digits"\nlimit = 16\nlimit_test = 4\n'


def recipe(model=MODEL, data=DATA, optim=OPTIM, train=TRAIN, head=HEAD):
    return "\n".join((head, model, data, optim, train))


def layers(*tables):
    text = '[model]\nname = "layers"\n'
    for table in tables:
        text += "[[model.layers]]\n" + "".join(f"{key} = {value}\n" for key, value in table.items())
    return text + '[[model.layers]]\ntype = "flatten"\n[[model.layers]]\ntype = "linear"\nout = 10\n'


def upsample(dice, folder):
    """Factors whose product overflows, alone and in a row."""
    choice = [2**20, 2**20 - 1, 2**19, 2**16, 65521, 46341, 2**21, 3037000500]
    many = dice.randrange(2, 6)
    factors = [dice.choice(choice)] * many if dice.random() < 0.5 else [dice.choice(choice) for _ in range(many)]
    between = [{"type": f'"{dice.choice(["relu", "max_pool", "global_avg_pool", "batch_norm"])}"'}] * dice.randrange(2)
    return recipe(layers(*({"type": '"upsample"', "factor": f} for f in factors), *between), IMAGES), True


LAYERS = {
    "linear": ("out",), "conv2d": ("out", "kernel", "stride", "padding", "dilation", "groups"),
    "depthwise": ("kernel", "stride", "padding", "dilation"), "max_pool": ("kernel", "stride", "padding"),
    "avg_pool": ("kernel", "stride", "padding"), "upsample": ("factor",), "local_response_norm": ("size",),
    "embedding": ("rows", "width"), "attention": ("heads",), "lstm": ("hidden", "layers"), "gru": ("hidden", "layers"),
}


def layer_sizes(dice, folder):
    """Layers with sizes that are zero, negative, or far beyond any memory."""
    tables = []
    for _ in range(dice.randrange(1, 5)):
        kind = dice.choice(sorted(LAYERS))
        if kind in ("attention", "lstm", "gru"):
            tables.append({"type": '"reshape"', "shape": [28, 28]})
        table = {"type": f'"{kind}"'}
        if kind in ("linear", "conv2d"):
            table["out"] = 8
        if kind == "embedding":
            table.update(rows=4, width=4)
        if kind in ("lstm", "gru"):
            table["hidden"] = 4
        for key in LAYERS[kind]:
            if dice.random() < 0.6:
                table[key] = dice.choice(SIZES)
        tables.append(table)
    return recipe(layers(*tables), IMAGES), None


def reshapes(dice, folder):
    shape = [dice.choice([*SIZES, 1, 28, 784]) for _ in range(dice.randrange(1, 9))]
    return recipe(layers({"type": '"reshape"', "shape": shape}), IMAGES), None


def conv_padding(dice, folder):
    table = {"type": '"conv2d"', "out": dice.choice([1, 8, *HUGE]), "kernel": dice.choice([1, 3, 2**20]),
             "padding": dice.choice([2**20, 2**31 - 1, 2**40, 2**62])}
    return recipe(layers(table, {"type": '"max_pool"'}), IMAGES), True


NUMBERS = {
    "mlp": ("hidden",), "alexnet": ("hidden", "dropout"), "resnet18": ("width",),
    "densenet40": ("growth", "dropout"), "lstm": ("hidden", "layers"), "char_gru": ("hidden", "embedding", "layers"),
    "gpt": ("width", "heads", "layers"), "autoencoder": ("hidden", "noise"), "conv_autoencoder": ("width", "code"),
    "gan": ("latent", "width"),
}


def model_sizes(dice, folder):
    name = dice.choice(sorted(NUMBERS))
    text = f'[model]\nname = "{name}"\n'
    for key in NUMBERS[name]:
        value = dice.choice([*map(str, SIZES), *ODD])
        if key == "hidden" and name in ("mlp", "autoencoder") and dice.random() < 0.7:
            value = str([dice.choice(SIZES) for _ in range(dice.randrange(1, 4))])
        text += f"{key} = {value}\n"
    if name not in ("gpt", "char_gru"):
        return recipe(text, IMAGES), None
    with open(os.path.join(folder, "story.txt"), "w") as file:
        file.write("call me " * 50)
    return recipe(text, f'[data]\nkind = "text"\npath = "{folder}/story.txt"\nlength = 8\n'), None


def too_large(dice, folder):
    """Networks that fit the arithmetic, but no memory: refused before the start, by `check` too."""
    model = dice.choice(['[model]\nname = "mlp"\nhidden = [1000000, 1000000]\n',
                         '[model]\nname = "mlp"\nhidden = [200000, 100000]\n',
                         layers({"type": '"upsample"', "factor": 20000}),
                         layers({"type": '"linear"', "out": 2**32})])
    return recipe(model, IMAGES), True


def settings(dice, folder):
    """Every number of the other tables out of its range or of another type."""
    keys = {"train": ("steps", "epochs", "batch", "shards", "seed", "keep", "log_every", "eval_every_steps", "target_loss",
                      "checkpoint_every_steps", "patience", "drop_partial", "evaluate"),
            "optim": ("lr", "momentum", "weight_decay", "clip_norm", "clip_value", "name"),
            "schedule": ("name", "warmup_steps", "warmup_epochs", "final", "power", "every_steps", "at_steps"),
            "data": ("limit", "limit_test", "holdout", "cache", "cache_mib", "transform", "scale", "classes"),
            "model.quantise": ("scheme", "weights_bits", "activations_bits"),
            "codec": ("name", "bits", "ratio"), "exchange": ("name", "tau"), "sync": ("name", "bound"), "rule": ("name",)}
    tables = {"model": {"name": '"mlp"', "hidden": "[8]"}, "data": {"kind": '"digits"', "limit": "16", "limit_test": "4"},
              "optim": {"name": '"momentum"', "lr": "0.1"}, "train": {"steps": "1", "batch": "4"}}
    for _ in range(dice.randrange(1, 4)):
        table = dice.choice(sorted(keys))
        value = dice.choice([*map(str, SIZES), *ODD])
        key = dice.choice(keys[table])
        if (table, key) in (("train", "steps"), ("train", "epochs")) and value not in ODD:
            value = dice.choice(["0", "-1", str(-2**63)])  # a long training is no attack
        tables.setdefault(table, {})[key] = value
    lines = {name: "".join(f"{key} = {value}\n" for key, value in table.items()) for name, table in tables.items()}
    return "\n".join(f"[{name}]\n{text}" for name, text in lines.items()), None


def synthetic(dice, folder):
    shape = [dice.choice([1, 8, *SIZES]) for _ in range(dice.randrange(1, 6))]
    text = f'[data]\nkind = "synthetic"\nmake = "{dice.choice(["blobs", "images", "x"])}"\nshape = {shape}\n'
    for key, usual in (("samples", 16), ("samples_test", 4), ("classes", 2)):
        text += f"{key} = {dice.choice([usual, *SIZES])}\n"
    return recipe(data=text), None


def transforms(dice, folder):
    one = dice.choice(['{ kind = "crop", size = %d }', '{ kind = "crop", pad = %d }', '{ kind = "shift", most = %d }',
                       '{ kind = "cutout", size = %d }', '{ kind = "normalise", mean = 0, std = %d }',
                       '{ kind = "noise", deviation = %d }', '{ kind = "flip", probability = %d }',
                       '{ kind = "crop", size = [%d, 3] }', '{ kind = "copy", from = "image", to = "%d" }'])
    many = dice.choice([1, 1, 2, 2000])
    return recipe(data=IMAGES + "transform = [" + ", ".join(one % dice.choice(SIZES) for _ in range(many)) + "]\n"), None


def depth(dice, folder):
    """Nesting that a parser which calls itself does not survive."""
    deep = dice.choice([500, 20_000, 200_000])
    return dice.choice(["x = " + "[" * deep, "x = " + "[" * deep + "]" * deep, "x = " + "{ a = " * deep + "1" + " }" * deep,
                        ".".join(["a"] * deep) + " = 1\n", "[" + ".".join(["a"] * deep) + "]\n",
                        "\n".join(f"[{'.'.join(['a'] * n)}]" for n in range(1, min(deep, 1000)))]) + "\n" + recipe(), True


def long_things(dice, folder):
    many = 200_000
    return dice.choice(["x = " + "9" * many, "x = 0." + "9" * many, "x = 1e" + "9" * many, '"' + "k" * many + '" = 1',
                        'x = "' + "v" * many, "x = " + "[1," * 1 + "1," * many + "]", "# " + "c" * many + "\n[model",
                        "\n".join(f"k{n} = 1" for n in range(many // 10)), "\n".join(f"[t{n}]" for n in range(many // 10)),
                        "x = 1\n" * many]) + "\n" + recipe(), True


def bytes_changed(dice, folder):
    content = bytearray(recipe(data=IMAGES).encode())
    for _ in range(dice.randrange(1, 8)):
        place = dice.randrange(len(content))
        how = dice.randrange(4)
        if how == 0:
            content[place] ^= 1 << dice.randrange(8)
        elif how == 1:
            del content[place:place + dice.randrange(1, 20)]
        elif how == 2:
            strange = [b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"[", b"]", b'"""', b"\r", b"=", b"\xc0\x80"]
            content[place:place] = dice.choice(strange)
        else:
            content[place:place] = content[max(0, place - 30):place]
    return bytes(content), None


def extends(dice, folder):
    """Bases that are missing, loops, pipes, devices, folders, or somebody else's files."""
    path = os.path.join(folder, "base.toml")
    how = dice.choice(["self", "pair", "chain", "fifo", "zero", "folder", "passwd", "nul", "missing", "list"])
    head = 'extends = "base.toml"\n'
    if how == "self":
        head = 'extends = "attack.toml"\n'
    elif how == "pair":
        with open(path, "w") as file:
            file.write('extends = "attack.toml"\n')
    elif how == "chain":
        for n in range(3000):
            with open(os.path.join(folder, f"c{n}.toml"), "w") as file:
                file.write(f'extends = "c{n + 1}.toml"\n')
        head = 'extends = "c0.toml"\n'
    elif how == "fifo":
        os.mkfifo(path)
    elif how == "zero":
        os.symlink("/dev/zero", path)
    elif how == "folder":
        os.mkdir(path)
    elif how == "passwd":
        head = f'extends = "{"../" * 20}etc/passwd"\n'
    elif how == "nul":
        head = 'extends = "a\\u0000b.toml"\n'
    elif how == "list":
        head = 'extends = ["a.toml", "b.toml"]\n'
    return recipe(head=head), True


def itself_strange(dice, folder):
    """The recipe itself is a pipe, a device, a folder or a very long file of nothing."""
    path = os.path.join(folder, "attack.toml")
    how = dice.choice(["fifo", "zero", "folder", "sparse"])
    if how == "fifo":
        os.mkfifo(path)
    elif how == "zero":
        os.symlink("/dev/zero", path)
    elif how == "folder":
        os.mkdir(path)
    else:
        with open(path, "wb") as file:
            file.truncate(dice.choice([1 << 30, 1 << 36]))
    return None, True


def cluster(dice, folder):
    """Cluster files of the simulation."""
    value = lambda: dice.choice([*map(str, SIZES), *ODD])
    text = f'[[machines]]\ncount = {dice.choice(["1", "2", value()])}\nranks = {dice.choice(["1", value()])}\n'
    for key in ("gflops", "bandwidth_gbit", "latency_us", "memory_gbit", "switch"):
        if dice.random() < 0.2:
            text += f"{key} = {value()}\n"
    if dice.random() < 0.3:
        text += f"[faults]\n{dice.choice(['drop', 'delay', 'reorder', 'corrupt'])} = {value()}\nbegin = {value()}\n"
    if dice.random() < 0.3:
        text += f"[[faults.crash]]\nrank = {value()}\nat = {value()}\n"
    with open(os.path.join(folder, "cluster.toml"), "w") as file:
        file.write(text)
    return recipe(), None


# test: (item, maker)
MAKERS = {
    "recipe: upsample products": (5, upsample), "recipe: sizes of layers": (5, layer_sizes),
    "recipe: reshapes": (5, reshapes), "recipe: padding": (5, conv_padding), "recipe: sizes of models": (5, model_sizes),
    "recipe: more than the memory": (5, too_large), "recipe: numbers out of range": (5, settings),
    "recipe: synthetic data": (5, synthetic), "recipe: transforms": (5, transforms),
    "recipe: depth": (5, depth), "recipe: lengths": (5, long_things), "recipe: bytes changed": (5, bytes_changed),
    "recipe: extends": (4, extends), "recipe: no file": (4, itself_strange), "cluster file": (8, cluster),
}
