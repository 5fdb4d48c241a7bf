#!/usr/bin/python3
"""What PyTorch (Debian's python3-torch) offers for splitting a model, on CPUs: the gpt of bench/peer_torch.py on two processes with
a core each (ddp; zero1: ZeroRedundancyOptimizer; fsdp: FullyShardedDataParallel), or, for `pipe`, in one process with two
threads, because all of a CPU is one device to torch.distributed.pipeline.sync.Pipe.

    bench/peer_sharded.py ddp|zero1|fsdp|pipe [--batch 16] [--steps 12]

Prints one JSON line: samples a second (median step), or why it does not run here.
"""
import argparse, importlib.util, json, os, statistics, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))


def networks(torch):
    spec = importlib.util.spec_from_file_location("peer_torch", os.path.join(HERE, "peer_torch.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.networks(torch)


def stages(torch, net):
    """The network cut after half of its blocks, as Pipe wants it: what goes between is one tensor."""
    nn, F = torch.nn, torch.nn.functional

    class Stage(nn.Module):
        def __init__(self, blocks, first, last):
            super().__init__()
            self.blocks, self.heads = blocks, net.heads
            if first:
                self.tok, self.pos = net.tok, net.pos
            if last:
                self.norm, self.head = net.norm, net.head
            self.first, self.last = first, last
            self.register_buffer("mask", net.mask)

        def forward(self, x):
            if self.first:
                x = self.tok(x) + self.pos
            b, t, d = x.shape
            for k in self.blocks:
                q, key, v = k["qkv"](k["l1"](x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
                a = torch.softmax(q @ key.transpose(-1, -2) / q.shape[-1] ** 0.5 + self.mask, -1)
                x = x + k["out"]((a @ v).transpose(1, 2).reshape(b, t, d))
                x = x + k["down"](F.gelu(k["up"](k["l2"](x))))
            return self.head(self.norm(x)) if self.last else x

    half = len(net.blocks) // 2
    return nn.Sequential(Stage(net.blocks[:half], True, False), Stage(net.blocks[half:], False, True))


def measure(args):
    import torch
    import torch.distributed as dist
    torch.manual_seed(0)
    pipe = args.way == "pipe"
    torch.set_num_threads(2 if pipe else 1)
    if pipe:
        dist.rpc.init_rpc("alone", rank=0, world_size=1)
        from torch.distributed.pipeline.sync import Pipe
        net = Pipe(stages(torch, networks(torch)["gpt"]()), chunks=8, checkpoint="never")
    else:
        dist.init_process_group("gloo")
        os.sched_setaffinity(0, {dist.get_rank() % os.cpu_count()})
        net = networks(torch)["gpt"]()
    if args.way == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel
        net = FullyShardedDataParallel(net)
    elif not pipe:
        net = torch.nn.parallel.DistributedDataParallel(net)
    if args.way == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        optim = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=1e-4)
    else:
        optim = torch.optim.AdamW(net.parameters(), 1e-4)
    samples = args.batch // (1 if pipe else 2)
    x, y = torch.randint(0, 1024, (samples, 128)), torch.randint(0, 1024, (samples * 128,))
    seconds = []
    for _ in range(args.steps + 3):
        begin = time.monotonic()
        optim.zero_grad()
        out = net(x)
        torch.nn.functional.cross_entropy(out.local_value().flatten(0, 1) if pipe else out, y).backward()
        optim.step()
        seconds.append(time.monotonic() - begin)
    if pipe or dist.get_rank() == 0:
        print(json.dumps(dict(way=args.way, samples_per_s=round(args.batch / statistics.median(seconds[3:]), 2))), flush=True)
    dist.rpc.shutdown() if pipe else dist.barrier()


def main():
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("way", choices=["ddp", "zero1", "fsdp", "pipe"])
    cli.add_argument("--batch", type=int, default=16)
    cli.add_argument("--steps", type=int, default=12)
    cli.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    args = cli.parse_args()
    if args.inner:
        return measure(args)
    # Debian's pthread OpenBLAS fights PyTorch's OpenMP team; the OpenMP build is the fair peer.
    threads, ranks = ("2", 1) if args.way == "pipe" else ("1", 2)
    env = dict(os.environ, OMP_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads, MASTER_ADDR="127.0.0.1", GLOO_SOCKET_IFNAME="lo",
               LD_LIBRARY_PATH="/usr/lib/x86_64-linux-gnu/openblas-openmp", MASTER_PORT=str(20000 + os.getpid() % 20000),
               WORLD_SIZE=str(ranks))
    children = [subprocess.Popen([sys.executable, __file__, args.way, "--batch", str(args.batch), "--steps", str(args.steps),
                                  "--inner"], env=dict(env, RANK=str(r)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for r in range(ranks)]
    said = [child.communicate() for child in children]
    if children[0].returncode == 0:
        print(said[0][0].splitlines()[-1])
    else:
        print(json.dumps(dict(way=args.way, why=said[0][1].strip().splitlines()[-1][:300])))


if __name__ == "__main__":
    main()
