#!/usr/bin/python3
"""The peer of `bench/systems ddp`: PyTorch DistributedDataParallel over Gloo on the same network, data and batch (MLP
784-1024-1024-10 on MNIST shifted by up to a pixel, momentum 0.9, cosine), with one of DDP's communication hooks, one rank of several. Rank 0
prints one JSON object: when the test accuracy was reached."""
import argparse
import json
import math
import os
import struct
import time


def idx(path):
    with open(path, "rb") as f:
        data = f.read()
    dims = struct.unpack(f">{data[3]}I", data[4:4 + 4 * data[3]])
    return data[4 + 4 * data[3]:], dims


def main():
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--rank", type=int, required=True)
    cli.add_argument("--size", type=int, required=True)
    cli.add_argument("--master", default="127.0.0.1")
    cli.add_argument("--hook", default="none", choices=["none", "fp16", "powersgd"])
    cli.add_argument("--target", type=float, default=0.985)
    cli.add_argument("--epochs", type=int, default=10)
    cli.add_argument("--batch", type=int, default=512)
    cli.add_argument("--lr", type=float, default=0.1)
    cli.add_argument("--data", default="data/mnist")
    args = cli.parse_args()
    os.environ.update(MASTER_ADDR=args.master, MASTER_PORT="29555", GLOO_SOCKET_IFNAME=os.environ.get("GLOO_SOCKET_IFNAME", "eth0"))
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", rank=args.rank, world_size=args.size)

    def load(name):
        images, dims = idx(f"{args.data}/{name}-images-idx3-ubyte")
        labels, _ = idx(f"{args.data}/{name}-labels-idx1-ubyte")
        x = torch.frombuffer(bytearray(images), dtype=torch.uint8).float().view(dims[0], -1) / 255
        return x, torch.frombuffer(bytearray(labels), dtype=torch.uint8).long()

    def normal(x):
        return (x - 0.1307) / 0.3081

    def shifted(x):
        """Every picture moved by up to one pixel, as the recipe's transform does."""
        n, side = len(x), torch.arange(28)
        framed = nn.functional.pad(x.view(n, 28, 28), (1, 1, 1, 1))
        down, right = torch.randint(0, 3, (n, 1)), torch.randint(0, 3, (n, 1))
        rows, columns = (down + side).view(n, 28, 1), (right + side).view(n, 1, 28)
        return framed[torch.arange(n).view(n, 1, 1), rows, columns].view(n, -1)

    (x, y), (tx, ty) = load("train"), load("t10k")
    tx = normal(tx)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    if args.hook == "powersgd":  # one bucket: the sums of several would meet in different orders on different ranks,
        dist._DEFAULT_FIRST_BUCKET_BYTES = 1 << 30  # which Gloo does not survive
    model = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=1024 if args.hook == "powersgd" else 25)
    if args.hook == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if args.hook == "powersgd":
        model.register_comm_hook(powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=10),
                                 powerSGD_hook.powerSGD_hook)
    optim = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    steps = math.ceil(len(x) / args.batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optim, steps * args.epochs)
    each = args.batch // args.size
    begin, samples, result = time.time(), 0, None
    for epoch in range(args.epochs):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for s in range(steps):
            part = order[s * args.batch + args.rank * each:s * args.batch + (args.rank + 1) * each]
            if len(part) == 0:  # the last batch of an epoch is smaller; every rank has to take part
                part = order[:1]
            optim.zero_grad()
            nn.functional.cross_entropy(model(normal(shifted(x[part]))), y[part]).backward()
            optim.step()
            schedule.step()
            samples += args.batch
        with torch.no_grad():
            accuracy = (net(tx).argmax(1) == ty).float().mean().item()
        seconds = time.time() - begin
        reached = accuracy >= args.target
        result = dict(test_accuracy=accuracy, epochs=epoch + 1, seconds=seconds, samples_per_s=samples / seconds,
                      stopped_by="target" if reached else "end")
        stop = torch.tensor([1 if reached else 0])
        dist.broadcast(stop, 0)
        if stop.item():
            break
    if args.rank == 0:
        print(json.dumps(result), flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
