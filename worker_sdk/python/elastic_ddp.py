"""Elastic data-parallel training with PyTorch: nodes may join and leave, and the loss curve has no gap.

    muster --nnodes=1:4 --rdzv-id=demo --rdzv-endpoint=10.0.0.1:29400 elastic_ddp.py --folder /shared/demo

The same command on each node, at any time. Before the set of nodes changes, muster asks the workers to save; they do it
all after the same step, and the next world goes on with the step after it. The global batch stays the same whatever the
world's size is, so the losses are those of a run in peace, but for rounding. FOLDER must be seen by rank 0, wherever
that is: losses.jsonl (one line for each step) and state-*.pt are there.

It needs muster_worker.py (this folder on PYTHONPATH) and PyTorch 1.13 or later; it runs under torchrun too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from typing import Any

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


def save(path: str, state: dict[str, Any]) -> None:
    """Whole or not at all, and on disk when it returns."""
    with open(path + ".new", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def runs_in(folder: str) -> list[tuple[int, int]]:
    """(generation, round) of what is saved there, newest first.

    A world that was cut off may still save while the next one has gone on. So each has a file of its own, and the newest is
    that of the newest run: of the greatest generation, one more than any that was there when it began.
    """
    found = (re.fullmatch(r"state-(\d+)-(\d+)\.pt", name) for name in os.listdir(folder))
    return sorted(((int(match[1]), int(match[2])) for match in found if match), reverse=True)


def path_of(folder: str, run: tuple[int, int]) -> str:
    """Where a run keeps its newest state."""
    return os.path.join(folder, f"state-{run[0]}-{run[1]}.pt")


def load(folder: str, launch_round: int) -> tuple[dict[str, Any] | None, tuple[int, int]]:
    """What rank 0 finds there, on every rank, or None if there is nothing; and this run's own name."""
    runs = runs_in(folder) if dist.get_rank() == 0 else []
    found = [torch.load(path_of(folder, runs[0])) if runs else None, (runs[0][0] + 1 if runs else 1, launch_round)]
    dist.broadcast_object_list(found, src=0)
    return found[0], found[1]


def keep(folder: str, run: tuple[int, int], state: dict[str, Any]) -> None:
    """Saves it, and removes what older runs have saved."""
    newest = max([run, *runs_in(folder)])
    if newest > run:
        raise SystemExit(f"superseded: a newer run has gone on and saved {path_of(folder, newest)}")
    save(path_of(folder, run), state)
    for old in runs_in(folder):
        if old < run:
            os.unlink(path_of(folder, old))


def train(worker: muster_worker.Worker, folder: str, steps: int) -> None:
    """Up to `steps` in all, from wherever the last world has stopped."""
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 64), torch.nn.ReLU(), torch.nn.Linear(64, CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    step, (state, run) = 0, load(folder, worker.round)
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
            keep(folder, run, {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()})
        if leaves:
            worker.drained(step)  # ends this process; the next world goes on from here


def main() -> None:
    """Reads the command line, joins, trains."""
    parser = argparse.ArgumentParser(description="elastic data-parallel training with PyTorch")
    parser.add_argument("--folder", required=True, help="for losses.jsonl and state.pt")
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
