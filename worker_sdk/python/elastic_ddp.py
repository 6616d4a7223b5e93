"""Elastic data-parallel training with PyTorch: nodes may join and leave, and the loss curve has no gap.

    muster --nnodes=1:4 --rdzv-id=demo --rdzv-endpoint=10.0.0.1:29400 elastic_ddp.py --folder /shared/demo

The same command on each node, at any time. Before the set of nodes changes, muster asks the workers to save; they do it
all after the same step, and the next world goes on with the step after it. The global batch stays the same whatever the
world's size is, so the losses are those of a run in peace, but for rounding. FOLDER must be seen by rank 0, wherever
that is: losses.jsonl (one line for each step) and step-*.pt are there.

It needs muster_worker.py (this folder on PYTHONPATH) and PyTorch 1.13 or later; it runs under torchrun too.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial

import muster_worker
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

SAMPLES, FEATURES, CLASSES = 4096, 32, 8
GLOBAL_BATCH = 48
SAVE_EVERY = 50


def make_data() -> tuple[torch.Tensor, torch.Tensor]:
    """The same on every rank: points, and the class that a fixed linear rule gives them."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(SAMPLES, FEATURES, generator=generator)
    rule = torch.randn(FEATURES, CLASSES, generator=generator)
    return x, (x @ rule).argmax(1)


def batch_of(step: int) -> torch.Tensor:
    """The global batch of a step: indices that depend on the step alone."""
    return torch.randint(0, SAMPLES, (GLOBAL_BATCH,), generator=torch.Generator().manual_seed(step))


def train(worker: muster_worker.Worker, folder: str, steps: int) -> None:
    """Up to `steps` in all, from wherever the last world has stopped."""
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 64), torch.nn.ReLU(), torch.nn.Linear(64, CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    checkpoints = muster_worker.Checkpoints(folder, worker.round)
    step, state = 0, checkpoints.load(torch.load, dist)
    if state:
        step = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    replica = DistributedDataParallel(model)
    x, y = make_data()
    while step < steps:
        mine = batch_of(step)[rank::world]
        # DDP averages over the ranks: weighted so that the sum is the mean over the global batch, however it divides.
        loss = cross_entropy(replica(x[mine]), y[mine], reduction="sum") * world / GLOBAL_BATCH
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        mean = loss.detach() / world
        dist.all_reduce(mean)
        worker.progress(step)
        if rank == 0:
            with open(os.path.join(folder, "losses.jsonl"), "a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, "loss": mean.item(), "world": world}) + "\n")
        leaves = worker.drain_requested(dist)
        if rank == 0 and (leaves or step % SAVE_EVERY == 0 or step == steps):
            state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            checkpoints.save(step, partial(torch.save, state))
        if leaves:
            worker.drained(step)  # ends this process; the next world goes on from here


def main() -> None:
    """Reads the command line, joins, trains."""
    parser = argparse.ArgumentParser(description="elastic data-parallel training with PyTorch")
    parser.add_argument("--folder", required=True, help="for losses.jsonl and step-*.pt")
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    torch.set_num_threads(1)
    worker = muster_worker.join()
    dist.init_process_group("gloo")
    train(worker, options.folder, options.steps)
    dist.destroy_process_group()
    worker.done()


if __name__ == "__main__":
    main()
