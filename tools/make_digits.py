#!/usr/bin/python3
"""Makes share/digits: a class-balanced part of MNIST, small enough to live in the repository.

    tools/make_digits.py MNIST_DIRECTORY     # with train-images-idx3-ubyte and so on, as `echelon data get mnist` leaves it

Takes the first 600 training and the first 100 test digits of each class, in MNIST's order, and writes them as gzipped
IDX files. The same input gives the same bytes.
"""
import gzip
import struct
import sys
from pathlib import Path

import numpy as np

source, target = Path(sys.argv[1]), Path(__file__).resolve().parent.parent / "share" / "digits"
target.mkdir(parents=True, exist_ok=True)
for split, each in (("train", 600), ("t10k", 100)):
    images = np.frombuffer((source / f"{split}-images-idx3-ubyte").read_bytes()[16:], np.uint8).reshape(-1, 28, 28)
    labels = np.frombuffer((source / f"{split}-labels-idx1-ubyte").read_bytes()[8:], np.uint8)
    chosen = np.sort(np.concatenate([np.flatnonzero(labels == c)[:each] for c in range(10)]))
    for name, magic, array in (("images-idx3", 0x803, images[chosen]), ("labels-idx1", 0x801, labels[chosen])):
        raw = struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()
        (target / f"{split}-{name}-ubyte.gz").write_bytes(gzip.compress(raw, 9, mtime=0))
