#!/usr/bin/python3
"""Writes tests/models/golden/NETWORK.json: what PyTorch computes for the five reference networks,
and for two that are written out in a recipe and hold the other layers.

Usage: tools/golden_torch.py [NETWORK...]     (needs Debian's python3-torch)
For each network, on a small batch: the outputs in training and in evaluation mode, every gradient, batch norm's running
statistics after one step, and ten losses of training. Parameters, inputs and targets are simple hashes of (name, index)
that tests/models/golden_test.cpp repeats bit for bit, so the files hold results only. PyTorch computes in double
precision: the numbers are the truth, and all of the difference is ours. Of a large tensor the file holds the sum, the norm
and a few elements; of a small one, all of it. Networks have the layers of the benchmark's peer, under Echelon's names.
"""
import json, math, os, sys
from collections import OrderedDict
import numpy, torch
from torch import nn
from torch.nn import functional as F

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "models", "golden")
BATCH = {"mlp": 8, "lenet5": 8, "resnet18": 4, "gpt": 2, "lstm": 4, "layers_of_images": 4, "layers_of_sequences": 4}
SAMPLES, STEPS = 24, 10
# A ReLU whose input is within rounding of zero may switch in single precision, and with it everything before it. For the
# deep one these inputs were chosen: nothing comes nearer to zero than 1.6e-5 (small images, so that there are fewer).
INPUT = {"resnet18": "input21"}


def hashes(name, count):
    h = 2166136261
    for c in name.encode(): h = (h ^ c) * 16777619 % 2**32
    x = (numpy.arange(count, dtype=numpy.uint64) * 0x9E3779B9 + h) & 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ((x ^ (x >> shift)) * factor) & 0xFFFFFFFF
    return x ^ (x >> 16)


def uniform(name, count):  # in [-0.5, 0.5), exact in double
    return hashes(name, count).astype(numpy.float64) * 2.0**-32 - 0.5


def first_value(name, shape):
    count = math.prod(shape)
    if len(shape) >= 2: values = uniform(name, count) * (2 / math.sqrt(count // shape[0]))
    elif name.endswith((".weight", ".running_var")): values = 1 + 0.2 * uniform(name, count)
    else: values = 0.2 * uniform(name, count)
    return torch.from_numpy(values.astype(numpy.float32).astype(numpy.float64)).reshape(shape)


def named(**layers):
    return nn.Sequential(OrderedDict(layers))


def mlp():
    return named(fc1=nn.Linear(784, 1024), r1=nn.ReLU(), fc2=nn.Linear(1024, 1024), r2=nn.ReLU(), fc3=nn.Linear(1024, 10))


def lenet5():
    return named(conv1=nn.Conv2d(1, 6, 5, padding=2), r1=nn.ReLU(), p1=nn.MaxPool2d(2), conv2=nn.Conv2d(6, 16, 5),
                 r2=nn.ReLU(), p2=nn.MaxPool2d(2), f=nn.Flatten(), fc1=nn.Linear(400, 120), r3=nn.ReLU(),
                 fc2=nn.Linear(120, 84), r4=nn.ReLU(), fc3=nn.Linear(84, 10))


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        plain = stride == 1 and cin == cout
        self.downsample = nn.Identity() if plain else nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False),
                                                                    nn.BatchNorm2d(cout))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.downsample(x))


def resnet18():
    layers, cin = OrderedDict(conv1=nn.Conv2d(3, 64, 3, 1, 1, bias=False), bn1=nn.BatchNorm2d(64), r=nn.ReLU()), 64
    for stage, cout in enumerate((64, 128, 256, 512)):
        layers[f"layer{stage + 1}"] = nn.Sequential(Block(cin, cout, 1 if stage == 0 else 2), Block(cout, cout, 1))
        cin = cout
    return nn.Sequential(OrderedDict(layers, pool=nn.AdaptiveAvgPool2d(1), f=nn.Flatten(), fc=nn.Linear(512, 10)))


class Positions(nn.Module):
    def __init__(self, seq, d):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(seq, d))


class GPT(nn.Module):
    def __init__(self, vocab=1024, d=256, heads=4, layers=4, seq=128):
        super().__init__()
        self.heads, self.layers = heads, layers
        self.tok, self.pos = nn.Embedding(vocab, d), Positions(seq, d)
        for i in range(layers):
            setattr(self, f"block{i}", nn.ModuleDict(dict(
                norm1=nn.LayerNorm(d), attention=nn.ModuleDict(dict(qkv=nn.Linear(d, 3 * d), out=nn.Linear(d, d))),
                norm2=nn.LayerNorm(d), up=nn.Linear(d, 4 * d), down=nn.Linear(4 * d, d))))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
        self.register_buffer("mask", torch.triu(torch.full((seq, seq), float("-inf")), 1), persistent=False)

    def forward(self, x):
        b, t = x.shape
        x = self.tok(x) + self.pos.weight
        for i in range(self.layers):
            k = getattr(self, f"block{i}")
            q, key, v = k["attention"]["qkv"](k["norm1"](x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            a = torch.softmax(q @ key.transpose(-1, -2) / q.shape[-1] ** 0.5 + self.mask, -1)
            x = x + k["attention"]["out"]((a @ v).transpose(1, 2).reshape(b, t, -1))
            x = x + k["down"](F.gelu(k["up"](k["norm2"](x))))
        return self.head(self.norm(x)).flatten(0, 1)


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTM(128, 256, batch_first=True), nn.Linear(256, 10)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1])


class LayersOfImages(nn.Module):  # what tests/models/golden_test.cpp writes as layers of a recipe, and the next one too
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, 2, 1), nn.GroupNorm(4, 8)
        self.depth = nn.Conv2d(8, 8, 3, 1, 1, groups=8)
        self.up = nn.ConvTranspose2d(8, 6, 3, 2, 1, 1)
        self.gate, self.out = nn.Linear(6, 6), nn.Linear(6, 10)

    def forward(self, x):
        seen = F.gelu(self.up(self.depth(F.silu(self.norm(self.conv(x))))))
        seen = seen * torch.sigmoid(self.gate(seen.mean((2, 3))))[:, :, None, None]
        return self.out(seen.mean((2, 3)))


class LayersOfSequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
        self.conv = nn.Conv1d(6, 8, 3, 2, 1)
        self.cross = nn.ModuleDict(dict(q=nn.Linear(10, 10), kv=nn.Linear(8, 20), out=nn.Linear(10, 10)))
        self.norm, self.back, self.out = nn.LayerNorm(10), nn.GRU(10, 4, batch_first=True, bidirectional=True), nn.Linear(8, 10)

    def forward(self, x):
        memory = F.gelu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        split = lambda t: t.reshape(t.shape[0], t.shape[1], 2, 5).transpose(1, 2)
        q = split(self.cross["q"](self.read(x)[0]))
        k, v = [split(t) for t in self.cross["kv"](memory).chunk(2, -1)]
        a = torch.softmax(q @ k.transpose(-1, -2) / 5 ** 0.5, -1)
        x = self.norm(self.cross["out"]((a @ v).transpose(1, 2).flatten(2)))
        return self.out(self.back(x)[1].transpose(0, 1).flatten(1))


NETWORKS = dict(mlp=mlp, lenet5=lenet5, resnet18=resnet18, gpt=GPT, lstm=LSTM, layers_of_images=LayersOfImages,
                layers_of_sequences=LayersOfSequences)
SAMPLE = {"mlp": (784,), "lenet5": (1, 28, 28), "resnet18": (3, 16, 16), "lstm": (64, 128), "layers_of_images": (3, 8, 8),
          "layers_of_sequences": (12, 6)}


def batch_of(network):
    n = BATCH[network]
    if network == "gpt":
        tokens = [torch.from_numpy((hashes(name, n * 128) % 1024).astype(numpy.int64)) for name in ("input", "target")]
        return tokens[0].reshape(n, 128), tokens[1]
    x = uniform(INPUT.get(network, "input"), n * math.prod(SAMPLE[network])) + 0.5
    x = torch.from_numpy(x.astype(numpy.float32).astype(numpy.float64)).reshape(n, *SAMPLE[network])
    return x, torch.from_numpy((hashes("target", n) % 10).astype(numpy.int64))


def summary(name, tensor):
    flat = tensor.detach().reshape(-1)
    count = flat.numel()
    at = sorted({int(h) % count for h in hashes(name + "@", SAMPLES)}) if count > 2 * SAMPLES else list(range(count))
    return dict(shape=list(tensor.shape), sum=float(f"{flat.sum().item():.8g}"), norm=float(f"{flat.norm().item():.8g}"),
                at=at, values=[float(f"{flat[i].item():.7g}") for i in at])


def golden(network):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = NETWORKS[network]().double()
    with torch.no_grad():
        for name, p in list(net.named_parameters()) + list(net.named_buffers()):
            if name != "mask" and not name.endswith("num_batches_tracked"): p.copy_(first_value(name, tuple(p.shape)))
    x, y = batch_of(network)
    result = dict(network=network, batch=BATCH[network], parameters=sum(p.numel() for p in net.parameters()),
                  torch=torch.__version__, input=INPUT.get(network, "input"), sample=SAMPLE.get(network, (128,)))
    net.eval()
    with torch.no_grad(): result["evaluation_logits"] = summary("evaluation_logits", net(x))
    net.train()

    decays = lambda name, p: p.dim() >= 2 and name != "pos.weight"
    groups = [dict(params=[p for n, p in net.named_parameters() if decays(n, p)]),
              dict(params=[p for n, p in net.named_parameters() if not decays(n, p)], weight_decay=0)]
    optimizer = (torch.optim.AdamW(groups, 1e-4, weight_decay=0.01) if network == "gpt"
                 else torch.optim.SGD(groups, 0.01, momentum=0.9))
    result["losses"] = []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        result["losses"].append(float(f"{loss.item():.9g}"))
        if step == 0:
            result["logits"] = summary("logits", logits)
            result["correct"] = int((logits.argmax(1) == y).sum())
            result["gradients"] = {n: summary(n, p.grad) for n, p in net.named_parameters()}
            result["statistics"] = {n: summary(n, b) for n, b in net.named_buffers() if "running" in n}
        optimizer.step()
    with open(os.path.join(FOLDER, network + ".json"), "w") as file:
        text = json.dumps(result, indent=0)
        file.write(text.replace(",\n", ",").replace('},"', '},\n"').replace("[\n", "[").replace("\n]", "]") + "\n")
    print(network, result["parameters"], result["losses"])


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    for name in sys.argv[1:] or NETWORKS: golden(name)
