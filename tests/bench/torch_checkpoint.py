"""The same as checkpoint_load.cpp with torch.distributed.checkpoint: a state of DTensors, split by rows.

usage: torch_checkpoint.py --folder FOLDER [--hidden N] [--repeat N]    started as a worker; rank 0 prints one line
"""

import argparse
import json
import os
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def make_state(hidden, mesh):
    state = {}
    for kind in ("model", "exp_avg", "exp_avg_sq"):
        width = 784
        for layer in range(8):
            out = 10 if layer == 7 else hidden
            for name, shape in (("weight", (out, width)), ("bias", (out,))):
                state[f"{kind}.{layer}.{name}"] = distribute_tensor(torch.rand(shape), mesh, [Shard(0)])
            width = out
    return state


def forget_files(folder):
    for name in os.listdir(folder):
        fd = os.open(os.path.join(folder, name), os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def timed(call):
    dist.barrier()
    start = time.perf_counter()
    call()
    dist.barrier()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    state = make_state(options.hidden, init_device_mesh("cpu", (dist.get_world_size(),)))
    figures = {"save_s": [], "load_s": [], "cold_load_s": []}
    for number in range(options.repeat):
        folder = os.path.join(options.folder, f"dcp-{number}")
        figures["save_s"].append(timed(lambda: dcp.save(state, checkpoint_id=folder)))
        figures["load_s"].append(timed(lambda: dcp.load(state, checkpoint_id=folder)))
        forget_files(folder)
        figures["cold_load_s"].append(timed(lambda: dcp.load(state, checkpoint_id=folder)))
        if dist.get_rank() == 0:
            shutil.rmtree(folder)
    if dist.get_rank() == 0:
        print("RESULT", json.dumps({**figures, "torch": torch.__version__}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
