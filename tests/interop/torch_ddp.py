"""A plain PyTorch worker: gloo group from the environment, an all-reduce check, a new group, some DDP steps with a
checkpoint. It knows nothing of muster.

usage: torch_ddp.py FOLDER [--fail-once-at STEP]
Writes FOLDER/rank<r>.json at the end; rank 0 checkpoints to FOLDER/state.pt after each step. With --fail-once-at,
rank 1 kills itself before that step in the first attempt, and the next attempt goes on from the checkpoint.
"""

import argparse
import json
import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 8


def check_collectives(rank, world):
    value = torch.full((1000,), float(rank + 1))
    dist.all_reduce(value)
    expected = world * (world + 1) / 2
    assert torch.all(value == expected), f"all_reduce gave {value[0].item()}, expected {expected}"

    evens = dist.new_group(list(range(0, world, 2)))
    if rank % 2 == 0:
        value = torch.ones(3)
        dist.all_reduce(value, group=evens)
        assert value[0].item() == (world + 1) // 2
    dist.barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--fail-once-at", type=int, default=-1)
    options = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    assert rank == int(os.environ["RANK"]) and world == int(os.environ["WORLD_SIZE"])
    check_collectives(rank, world)

    torch.manual_seed(7)
    model = DistributedDataParallel(torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state_path = os.path.join(options.folder, "state.pt")
    start = 0
    if os.path.exists(state_path):
        state = torch.load(state_path)
        model.load_state_dict(state["model"])
        start = state["step"]

    first_attempt = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    loss = None
    for step in range(start, STEPS):
        if step == options.fail_once_at and rank == 1 and first_attempt:
            os.kill(os.getpid(), signal.SIGKILL)
        generator = torch.Generator().manual_seed(1000 * step + rank)
        x = torch.randn(32, 16, generator=generator)
        y = torch.randint(0, 4, (32,), generator=generator)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if rank == 0:
            torch.save({"model": model.state_dict(), "step": step + 1}, state_path + ".new")
            os.replace(state_path + ".new", state_path)
        dist.barrier()

    total = sum(p.double().sum().item() for p in model.parameters())
    with open(os.path.join(options.folder, f"rank{rank}.json"), "w") as f:
        json.dump({"rank": rank, "world": world, "start": start, "sum": total, "torch": torch.__version__}, f)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
