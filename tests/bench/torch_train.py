"""The reference trainers' work in PyTorch, for train_bench.py: one rank of a job on the CPU over Gloo, one thread.

usage: torch_train.py ddp|fsdp DATA_DIR STEPS WIDTHS BATCH_SIZE    (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT in env)
WIDTHS as in 784-256-10. Rank 0 prints samples a second of all ranks, over STEPS steps after some to warm up.
"""

import gzip
import os
import sys
import time

import torch
import torch.distributed as dist

WARM_UP = 3


def images_and_labels(folder):
    with gzip.open(os.path.join(folder, "train-images-idx3-ubyte.gz")) as f:
        images = torch.frombuffer(bytearray(f.read()[16:]), dtype=torch.uint8).view(-1, 784)
    with gzip.open(os.path.join(folder, "train-labels-idx1-ubyte.gz")) as f:
        labels = torch.frombuffer(bytearray(f.read()[8:]), dtype=torch.uint8).long()
    return images, labels


def perceptron(widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def wrapped(kind, model):
    if kind == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        if sum(p.numel() for p in layer.parameters()) >= 1_000_000:
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main():
    kind, folder, steps, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[5])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    images, labels = images_and_labels(folder)
    torch.manual_seed(0)
    model = wrapped(kind, perceptron([int(width) for width in sys.argv[4].split("-")]))
    make = torch.optim.Adam if kind == "ddp" else torch.optim.AdamW
    optimizer = make(model.parameters(), lr=1e-3)
    order = torch.randperm(len(labels))[rank::world]
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            dist.barrier()
            began = time.perf_counter()
        at = step * batch % (len(order) - batch)
        chosen = order[at:at + batch]
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[chosen].float() / 255), labels[chosen])
        loss.backward()
        optimizer.step()
        loss.item()
    dist.barrier()
    if rank == 0:
        print(steps * batch * world / (time.perf_counter() - began))


if __name__ == "__main__":
    main()
