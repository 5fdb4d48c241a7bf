#!/usr/bin/python3
"""PyTorch's pipeline (torch.distributed.pipeline.sync.Pipe, Debian's python3-torch) on CPUs: the network of
bench/pipeline_bench.cpp in two partitions, 8 micro-batches. It has one worker thread for each device, and all of a CPU is one
device: partitions run one after another, and only a kernel's own threads use a second core.

    bench/peer_pipe.py [--threads 2] [--steps 6]      milliseconds of a step, median
"""
import argparse, os, statistics, time

import torch
from torch import nn
from torch.distributed.pipeline.sync import Pipe

VOCABULARY, WIDTH, HEADS, LAYERS, TIME, BATCH = 256, 256, 4, 4, 64, 32


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Parameter(torch.zeros(1, TIME, WIDTH))

    def forward(self, x):
        return self.tokens(x) + self.positions


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm2, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("mask", torch.triu(torch.full((TIME, TIME), float("-inf")), 1))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + self.mask, -1)
        x = x + self.out((a @ v).transpose(1, 2).reshape(b, t, -1))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def main():
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--threads", type=int, default=2)
    cli.add_argument("--steps", type=int, default=6)
    args = cli.parse_args()
    torch.set_num_threads(args.threads)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.distributed.rpc.init_rpc("alone", rank=0, world_size=1)
    half = LAYERS // 2
    first = nn.Sequential(Embedding(), *[Block() for _ in range(half)])
    last = nn.Sequential(*[Block() for _ in range(LAYERS - half)], nn.LayerNorm(WIDTH),
                         nn.Linear(WIDTH, VOCABULARY, bias=False))
    pipe = Pipe(nn.Sequential(first, last), chunks=8, checkpoint="never")
    optim = torch.optim.Adam(pipe.parameters(), 1e-3)
    x, y = torch.randint(0, VOCABULARY, (BATCH, TIME)), torch.randint(0, VOCABULARY, (BATCH * TIME,))
    seconds = []
    for _ in range(args.steps + 2):
        begin = time.monotonic()
        optim.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(pipe(x).local_value().flatten(0, 1), y).backward()
        optim.step()
        seconds.append(time.monotonic() - begin)
    print(f"torch Pipe, 2 partitions, 8 micro-batches, {args.threads} threads: {1e3 * statistics.median(seconds[2:]):.1f} ms")
    torch.distributed.rpc.shutdown()


if __name__ == "__main__":
    main()
