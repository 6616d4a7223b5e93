"""The experiment of trainers/lr_scaling.cpp in PyTorch: its data, its initial parameters, its losses.

lr_scaling_reference.py FOLDER

Writes FOLDER/data (x, y) and FOLDER/init (the parameters) as safetensors, and FOLDER/losses: one line for each run of
lr 0.1 at batch 64, 0.1 at 256, 0.4 at 256.
"""

import json
import pathlib
import struct
import sys

import torch

TYPES = {torch.float32: "F32", torch.int64: "I64"}
RUNS = ((0.1, 64), (0.1, 256), (0.4, 256))
EPOCHS, ROWS = 30, 512


def write_safetensors(path: pathlib.Path, tensors: "dict[str, torch.Tensor]") -> None:
    header, data = {}, b""
    for name, tensor in tensors.items():
        piece = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))


def final_loss(x: torch.Tensor, y: torch.Tensor, rate: float, batch: int) -> float:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(EPOCHS):
        for begin in range(0, ROWS, batch):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[begin:begin + batch]), y[begin:begin + batch]).backward()
            optimizer.step()
    return torch.nn.functional.cross_entropy(model(x), y).item()


def main() -> None:
    torch.set_num_threads(1)
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(0)
    x = torch.randn(ROWS, 64)
    y = torch.randint(0, 10, (ROWS,))
    write_safetensors(folder / "data", {"x": x, "y": y})
    write_safetensors(folder / "init", dict(make_model().state_dict()))
    (folder / "losses").write_text("".join(f"{final_loss(x, y, rate, batch)}\n" for rate, batch in RUNS))


main()
