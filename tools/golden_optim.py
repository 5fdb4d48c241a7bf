#!/usr/bin/env python3
"""Writes tests/optim/golden.txt: weights after some steps of torch.optim, for tests/optim/rules_test.cpp.

Usage: tools/golden_optim.py > tests/optim/golden.txt
Each case is a line "case NAME KEY=VALUE..." in the words of a recipe's [optim] table, then one line
"STEP w0 w1 ..." for steps 1, 2 and 10. Weights and gradients are simple fractions that C++ can repeat exactly.
"""
import torch

SIZE, STEPS = 11, 10


def start():
    return torch.tensor([((i * 37) % 101 - 50) / 64 for i in range(SIZE)], dtype=torch.float32)


def gradient(step):
    return torch.tensor([((i * 7919 + step * 1047) % 257 - 128) / 128 for i in range(SIZE)], dtype=torch.float32)


CASES = [
    ("sgd", {"lr": 0.1}),
    ("sgd", {"lr": 0.1, "weight_decay": 0.05}),
    ("momentum", {"lr": 0.05, "momentum": 0.9}),
    ("momentum", {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.01}),
    ("nesterov", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
    ("adagrad", {"lr": 0.1, "weight_decay": 0.01}),
    ("adadelta", {"lr": 1.0, "rho": 0.9, "weight_decay": 0.01}),
    ("rmsprop", {"lr": 0.01}),
    ("rmsprop", {"lr": 0.01, "alpha": 0.95, "momentum": 0.9, "weight_decay": 0.01}),
    ("adam", {"lr": 0.01}),
    ("adam", {"lr": 0.01, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6, "weight_decay": 0.1}),
    ("adamw", {"lr": 0.01, "weight_decay": 0.1}),
    ("adamw", {"lr": 0.01, "weight_decay": 0.1, "clip_norm": 1.5}),
    ("momentum", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, "clip_value": 0.25}),
]
CLASSES = {"sgd": torch.optim.SGD, "momentum": torch.optim.SGD, "nesterov": torch.optim.SGD,
           "adagrad": torch.optim.Adagrad, "adadelta": torch.optim.Adadelta, "rmsprop": torch.optim.RMSprop,
           "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}

for name, options in CASES:
    print("case", name, *(f"{key}={value}" for key, value in options.items()))
    settings = {k: v for k, v in options.items() if not k.startswith("clip") and not k.startswith("beta")}
    if "beta1" in options:
        settings["betas"] = (options["beta1"], options["beta2"])
    if name == "nesterov":
        settings["nesterov"] = True
    w = torch.nn.Parameter(start())
    optimizer = CLASSES[name]([w], **settings)
    for step in range(1, STEPS + 1):
        w.grad = gradient(step)
        if "clip_value" in options:
            torch.nn.utils.clip_grad_value_([w], options["clip_value"])
        if "clip_norm" in options:
            torch.nn.utils.clip_grad_norm_([w], options["clip_norm"])
        optimizer.step()
        if step in (1, 2, STEPS):
            print(step, *(f"{value:.9g}" for value in w.detach().tolist()))
