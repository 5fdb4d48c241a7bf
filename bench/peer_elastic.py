"""LeNet-5 with DDP under torchrun, for bench/faults --peer: saves every 50 steps, writes a line a step to the file in argv[1]."""
import os, sys, time
import torch
import torch.distributed as dist
from torch import nn

log, saved = sys.argv[1], sys.argv[1] + ".pt"
torch.set_num_threads(1)
torch.manual_seed(1)
dist.init_process_group("gloo")
model = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))
optim = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
first = 0
if os.path.exists(saved):
    state = torch.load(saved)
    first = state["step"]
    model.load_state_dict(state["model"])
    optim.load_state_dict(state["optim"])
model = nn.parallel.DistributedDataParallel(model)
for step in range(first, 1000000):
    g = torch.Generator().manual_seed(1000 * step + dist.get_rank())
    x, y = torch.randn(64 // dist.get_world_size(), 1, 28, 28, generator=g), torch.randint(0, 10, (64 // dist.get_world_size(),), generator=g)
    optim.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optim.step()
    if dist.get_rank() == 0:
        with open(log, "a") as f:
            f.write(f"{time.time()} {step}\n")
        if (step + 1) % 50 == 0:
            torch.save({"step": step + 1, "model": model.module.state_dict(), "optim": optim.state_dict()}, saved + ".new")
            os.replace(saved + ".new", saved)
