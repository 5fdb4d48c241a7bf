#!/usr/bin/python3
"""Writes tests/onnx/golden/NETWORK.onnx and NETWORK.json: small networks as PyTorch exports them, and what PyTorch says
for one batch of inputs.

Usage: tools/golden_onnx.py [NETWORK...]     (needs Debian's python3-torch)
Each network has the layers of its big sister at a tiny width, random weights, statistics that are not the neutral ones,
and an open batch. The files are what `torch.onnx.export` of PyTorch 1.13 writes, byte for byte.
"""
import json, os, sys
import torch
from torch import nn
from torch.nn import functional as F

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "onnx", "golden")


class Residual(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(into, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or into != out:
            self.downsample = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet18(nn.Module):
    def __init__(self, width=2, classes=5):
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        sizes = [width, width, 2 * width, 2 * width, 2 * width]
        for i in range(4):
            stage = nn.Sequential(Residual(sizes[i], sizes[i + 1], 2 if i else 1), Residual(sizes[i + 1], sizes[i + 1], 1))
            setattr(self, f"layer{i + 1}", stage)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(sizes[4], classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 3, 5, padding=2), nn.Conv2d(3, 4, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(100, 12), nn.Linear(12, 8), nn.Linear(8, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.tanh(self.conv1(x)), 2)
        x = F.avg_pool2d(torch.sigmoid(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class VGG(nn.Module):
    def __init__(self):
        super().__init__()
        layers, into = [], 3
        for out in [4, "M", 6, "M", 6, 8, "M", 8, 8, "M"]:
            layers += [nn.MaxPool2d(2, 2)] if out == "M" else [nn.Conv2d(into, out, 3, padding=1), nn.ReLU(inplace=True)]
            into = into if out == "M" else out
        self.features, self.avgpool = nn.Sequential(*layers), nn.AdaptiveAvgPool2d((2, 2))
        self.classifier = nn.Sequential(nn.Linear(32, 16), nn.ReLU(True), nn.Dropout(), nn.Linear(16, 16), nn.ReLU(True),
                                        nn.Dropout(), nn.Linear(16, 5))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class DenseLayer(nn.Module):
    def __init__(self, into, growth):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(into), nn.Conv2d(into, 4 * growth, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(4 * growth), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.cat([x, self.conv2(F.relu(self.norm2(self.conv1(F.relu(self.norm1(x))))))], 1)


class DenseNet(nn.Module):
    def __init__(self, growth=2):
        super().__init__()
        self.conv0 = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.block1 = nn.Sequential(DenseLayer(4, growth), DenseLayer(6, growth))
        self.norm1, self.conv1 = nn.BatchNorm2d(8), nn.Conv2d(8, 4, 1, bias=False)
        self.block2 = nn.Sequential(DenseLayer(4, growth), DenseLayer(6, growth))
        self.norm2, self.classifier = nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x):
        x = F.avg_pool2d(self.conv1(F.relu(self.norm1(self.block1(self.conv0(x))))), 2, 2)
        x = F.relu(self.norm2(self.block2(x)))
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


class MobileNet(nn.Module):
    """Inverted residuals with ReLU6, as MobileNetV2's, and a gate as MobileNetV3's (squeeze and excitation)."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU6(True))
        self.expand = nn.Sequential(nn.Conv2d(4, 8, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(True))
        self.depthwise = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU6(True))
        self.squeeze, self.excite = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
        self.project = nn.Sequential(nn.Conv2d(8, 4, 1, bias=False), nn.BatchNorm2d(4))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(4, 5))

    def forward(self, x):
        x = self.stem(x)
        y = self.depthwise(self.expand(x))
        y = y * torch.sigmoid(self.excite(F.silu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        x = x + self.project(y)
        return self.classifier(x.mean([2, 3]))


class LSTM(nn.Module):
    def __init__(self, kind=nn.LSTM, layers=2, bidirectional=False, last=False):
        super().__init__()
        self.rnn = kind(5, 6, num_layers=layers, batch_first=True, bidirectional=bidirectional)
        self.fc, self.last = nn.Linear(12 if bidirectional else 6, 3), last

    def forward(self, x):
        y, state = self.rnn(x)
        if self.last: return self.fc((state[0] if isinstance(state, tuple) else state)[-1])
        return self.fc(y[:, -1])


class Attention(nn.Module):
    def __init__(self, width, heads, time):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(time, time)).view(1, 1, time, time))

    def forward(self, x):
        n, t, d = x.size()
        q, k, v = self.c_attn(x).split(d, dim=2)
        q, k, v = (y.view(n, t, self.heads, d // self.heads).transpose(1, 2) for y in (q, k, v))
        a = (q @ k.transpose(-2, -1)) * (1.0 / (d // self.heads) ** 0.5)
        a = F.softmax(a.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1)
        return self.c_proj((a @ v).transpose(1, 2).contiguous().view(n, t, d))


class Block(nn.Module):
    def __init__(self, width, heads, time):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(width, heads, time), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, width=8, heads=2, time=6, vocabulary=11):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(time, width)
        self.h = nn.Sequential(Block(width, heads, time), Block(width, heads, time))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.size(1)))
        return self.head(self.ln_f(self.h(x)))


def mlp():
    return nn.Sequential(nn.Linear(7, 9), nn.BatchNorm1d(9), nn.LeakyReLU(0.1), nn.Linear(9, 8), nn.ELU(), nn.Dropout(0.3),
                         nn.Linear(8, 4))


# Name: how it is made, the shape of a sample (None: tokens), whether batch norms stay (PyTorch joins them to the
# convolutions before them when it exports for inference).
NETWORKS = {
    "mlp": (mlp, (7,), False),
    "lenet": (LeNet, (1, 28, 28), False),
    "resnet18": (ResNet18, (3, 32, 32), False),
    "resnet18_norms": (ResNet18, (3, 32, 32), True),
    "vgg": (VGG, (3, 32, 32), False),
    "densenet": (DenseNet, (3, 8, 8), False),
    "mobilenet": (MobileNet, (3, 12, 12), True),
    "lstm": (LSTM, (4, 5), False),
    "lstm_last": (lambda: LSTM(last=True, layers=1), (4, 5), False),
    "gru": (lambda: LSTM(nn.GRU), (4, 5), False),
    "bilstm": (lambda: LSTM(bidirectional=True), (4, 5), False),
    "gpt": (GPT, None, False),
    "gpt_opset14": (GPT, None, False),  # PyTorch 1.13's usual opset: layer norm written out
}


def restless(model):
    for name, value in model.state_dict().items():
        if name.endswith("running_mean"): value.copy_(torch.randn_like(value) * 0.2)
        if name.endswith("running_var"): value.copy_(torch.rand_like(value) + 0.5)
        if value.dim() == 1 and not "running" in name and value.dtype == torch.float32: value.add_(torch.randn_like(value) * 0.1)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for name in sys.argv[1:] or NETWORKS:
        make, shape, norms = NETWORKS[name]
        torch.manual_seed(7)
        model = make().eval()
        restless(model)
        x = torch.randint(0, 11, (2, 6)) if shape is None else (torch.randn(2, *shape) * 10).round() / 10  # short in JSON
        kind = torch.onnx.TrainingMode
        torch.onnx.export(model, x, os.path.join(FOLDER, name + ".onnx"), opset_version=14 if name.endswith("opset14") else 17, input_names=["x"],
                          output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
                          training=kind.PRESERVE if norms else kind.EVAL, do_constant_folding=not norms)
        if norms: model.eval()
        y = model(x)
        with open(os.path.join(FOLDER, name + ".json"), "w") as f:
            numbers = lambda t: [round(float(v), 7) for v in t.flatten()]
            json.dump({"x_shape": list(x.shape), "x": numbers(x), "y_shape": list(y.shape), "y": numbers(y)}, f)
            f.write("\n")
        print(name, os.path.getsize(os.path.join(FOLDER, name + ".onnx")), "bytes", y.shape)


if __name__ == "__main__":
    main()
