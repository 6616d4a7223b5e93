"""Trains the reference model with PyTorch on given batches; its losses are what the trainers must reproduce.

torch_reference.py FOLDER WIDTHS OPTIMIZER...

WIDTHS are those of the layers, as in 784-256-10; between them are ReLUs.

FOLDER has params.bin, images.bin (float32) and labels.bin (uint8), little-endian, as the C++ test wrote them.
For each optimizer, writes OPTIMIZER-losses.bin (float64) and OPTIMIZER-params.bin (float32).
"""

import pathlib
import sys

import torch

STEPS, BATCHES, BATCH_SIZE = 100, 10, 64
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01),
}


def read(path: pathlib.Path, dtype: torch.dtype) -> torch.Tensor:
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=dtype)


def main() -> None:
    torch.set_num_threads(1)
    folder = pathlib.Path(sys.argv[1])
    params = read(folder / "params.bin", torch.float32)
    images = read(folder / "images.bin", torch.float32).view(BATCHES, BATCH_SIZE, 784)
    widths = [int(width) for width in sys.argv[2].split("-")]
    labels = read(folder / "labels.bin", torch.uint8).view(BATCHES, BATCH_SIZE).long()
    for name in sys.argv[3:]:
        layers = []
        for inputs, outputs in zip(widths, widths[1:]):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        model = torch.nn.Sequential(*layers[:-1])
        torch.nn.utils.vector_to_parameters(params.clone(), model.parameters())
        optimizer = OPTIMIZERS[name](model.parameters())
        losses = []
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images[step % BATCHES]), labels[step % BATCHES])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        final = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
        (folder / f"{name}-losses.bin").write_bytes(torch.tensor(losses, dtype=torch.float64).numpy().tobytes())
        (folder / f"{name}-params.bin").write_bytes(final.numpy().tobytes())


main()
