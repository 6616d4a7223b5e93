"""A PyTorch DDP script that is trained under every launcher: checkpoints, resumes at any world size, saves when asked.

usage: torch_elastic.py --steps N --checkpoint-every K [--batch-size B] --checkpoint-dir D --metrics-file F --export F
Needs nothing of muster: where muster_worker (worker_sdk/python) can be imported it also saves when the job changes its
size. A sample's number decides what it is, so no data set is needed. The metrics are those of the trainers here.
"""

import argparse
import io
import json
import os
import re

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

try:
    import muster_worker
except ImportError:
    muster_worker = None


# PyTorch 1's reader of weights alone knows no floats, which an optimizer's state has.
SAFELY = {} if torch.__version__.startswith("1.") else {"weights_only": True}


class Metrics:
    """JSON lines, by rank 0 alone; each tells the run: (generation, round)."""

    def __init__(self, path, speaks):
        self._file = open(path, "a", buffering=1) if speaks and path else None
        self.run = (0, 0)

    def write(self, event, **values):
        if self._file:
            run = {"generation": self.run[0], "round": self.run[1]}
            self._file.write(json.dumps({"event": event, **values, **run}, separators=(",", ":")) + "\n")


def batch_of(position, rank, world, size):
    """As many samples as `size`, from the place that all ranks have come to."""
    numbers = torch.arange(position + rank, position + world * size, world)
    generator = torch.Generator().manual_seed(position * 1000 + rank)
    labels = (numbers % 4).long()
    x = torch.randn(len(numbers), 16, generator=generator)
    x[:, :4] += torch.nn.functional.one_hot(labels, 4)  # what there is to learn
    return x, labels


class Superseded(Exception):
    """Another world has gone on from these checkpoints: what this one computes counts no longer."""


def key_of(name):
    """(generation, round, step) of a checkpoint's file; None for another file."""
    match = re.fullmatch(r"step-(\d+)-generation-(\d+)-round-(\d+)", name)
    return match and (int(match[2]), int(match[3]), int(match[1]))


class State:
    """What a checkpoint holds; rank 0 writes it, whole or not at all, and keeps the two before.

    A world that was cut off may still save while the next one has gone on: so a file's name tells the run, and the newest
    is that of the newest run, whatever its step.
    """

    def __init__(self, folder, model, optimizer, metrics):
        self._folder, self._model, self._optimizer, self._metrics = folder, model, optimizer, metrics
        self.step = self.position = 0
        self.run = (0, 0)
        os.makedirs(folder, exist_ok=True)

    def names(self):
        """Newest first."""
        return sorted(filter(key_of, os.listdir(self._folder)), key=key_of, reverse=True)

    def save(self):
        """False if that could not be done: training goes on with what was saved before."""
        if dist.get_rank() != 0:
            return True
        if newer := [name for name in self.names() if key_of(name)[:2] > self.run]:
            self._metrics.write("superseded", step=self.step, why=newer[0])
            raise Superseded(f"round {key_of(newer[0])[1]} has gone on and saved {newer[0]}; what round {self.run[1]} "
                             "computes counts no longer")
        generation, launch_round = self.run
        path = os.path.join(self._folder, f"step-{self.step:08d}-generation-{generation}-round-{launch_round}")
        try:
            # PyTorch 1 says nothing of a disk that is full, or ends the process: it writes to memory here.
            state = io.BytesIO()
            torch.save({"model": self._model.state_dict(), "optimizer": self._optimizer.state_dict(), "step": self.step,
                        "position": self.position}, state)
            with open(path + ".new", "wb") as f:
                f.write(state.getbuffer())
                f.flush()
                os.fsync(f.fileno())
            os.replace(path + ".new", path)
        except OSError as error:
            if os.path.exists(path + ".new"):
                os.unlink(path + ".new")
            print(f"checkpoint of step {self.step} not saved: {error}; training goes on", flush=True)
            self._metrics.write("checkpoint_failed", step=self.step, why=str(error))
            return False
        for old in self.names()[3:]:
            os.unlink(os.path.join(self._folder, old))
        return True

    def load(self):
        """By rank 0, which tells the others: the run whose checkpoint it is or None, and why newer ones were left out."""
        found, skipped, names, saved_by = None, [], self.names() if dist.get_rank() == 0 else [], None
        self.run = (1 + max((key_of(name)[0] for name in names), default=0), int(os.environ.get("MUSTER_ROUND", "0")))
        self._metrics.run = self.run
        for name in names:
            try:
                found, saved_by = torch.load(os.path.join(self._folder, name), **SAFELY), key_of(name)[:2]
                break
            except Exception as error:  # whatever a damaged file leads to
                skipped.append(f"{name}: {error}")
                print(f"checkpoint skipped: {skipped[-1]}", flush=True)
        shared = [found]
        dist.broadcast_object_list(shared, src=0)
        if shared[0]:
            self._model.load_state_dict(shared[0]["model"])
            self._optimizer.load_state_dict(shared[0]["optimizer"])
            self.step, self.position = shared[0]["step"], shared[0]["position"]
        return saved_by, skipped


def parse():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--checkpoint-every", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--checkpoint-dir", required=True)
    parser.add_argument("--metrics-file", default="")
    parser.add_argument("--export", default="")
    return parser.parse_args()


def asked_to_save(worker):
    return worker is not None and worker.drain_requested(dist)


def train(options, worker, model, state, optimizer, metrics):
    rank, world, saved = dist.get_rank(), dist.get_world_size(), state.step
    while state.step < options.steps:
        x, y = batch_of(state.position, rank, world, options.batch_size)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        state.step += 1
        state.position += world * options.batch_size
        metrics.write("step", step=state.step, epoch=0, loss=loss.item())
        if worker:
            worker.progress(state.step)
        if state.step % options.checkpoint_every == 0 and state.save():
            saved = state.step
        if asked_to_save(worker):
            is_saved = saved == state.step or state.save()
            metrics.write("drained", step=state.step, saved=is_saved)
            worker.drained(state.step if is_saved else 0)


def main():
    options = parse()
    torch.set_num_threads(1)
    worker = muster_worker.join() if muster_worker else None
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    model = DistributedDataParallel(torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    metrics = Metrics(options.metrics_file, dist.get_rank() == 0)
    state = State(options.checkpoint_dir, model, optimizer, metrics)
    saved_by, skipped = state.load()
    if saved_by:
        metrics.write("resumed", step=state.step, epoch=0, position=state.position, skipped=skipped,
                      from_generation=saved_by[0], from_round=saved_by[1])
    train(options, worker, model, state, optimizer, metrics)
    if dist.get_rank() == 0 and options.export:
        torch.save(model.module.state_dict(), options.export)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
