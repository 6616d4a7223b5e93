"""fsdp_mlp's losses beside PyTorch's: the same model, initial parameters, samples and optimizer, step for step.

usage: loss_curve.py BIN_DIR PYTHON... [--steps N] [--hidden-dim N] [--layers N] [--data-dir DIR]

Two ranks, batch 64 each. Each PYTHON, which has PyTorch, trains the two ranks' batches as one, as data parallelism must
come out; a second one with another PyTorch shows what rounding alone makes of the curve (a unit near zero that one has
switched on and the other off is enough for Adam's first steps). Prints the mean loss of rank 0's samples over each
stretch of steps, and the greatest difference of a step from the first PYTHON's.
"""

import argparse
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.abspath(__file__)
WORLD, BATCH, RATE, DECAY = 2, 64, 1e-3, 0.01
STRETCHES = 10
LIMIT_S = 3600


def write_safetensors(path, tensors):
    header, at, parts = {}, 0, []
    for name, tensor in tensors.items():
        data = tensor.detach().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def batches_of(folder):
    """For each step the samples of all ranks, rank 0's first."""
    steps = {}
    for path in sorted(glob.glob(os.path.join(folder, "*-rank-*.jsonl"))):
        with open(path, encoding="utf-8") as f:
            for line in list(f)[1:]:
                entry = json.loads(line)
                steps.setdefault(entry["step"], []).extend(entry["samples"])
    return [steps[step] for step in sorted(steps)]


def read_safetensors(path, torch):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = bytearray(f.read())
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        found[name] = torch.frombuffer(data[begin:end], dtype=torch.float32).view(entry["shape"])
    return found


def torch_side(folder, hidden, layers, data_dir):
    """The first to be called makes the initial parameters, the others train."""
    import torch
    sys.path.insert(0, os.path.dirname(HERE))
    from torch_train import images_and_labels, perceptron
    torch.manual_seed(0)
    model = perceptron([784] + (layers - 1) * [hidden] + [10])
    initial = os.path.join(folder, "init.safetensors")
    if not os.path.exists(initial):
        return write_safetensors(initial, model.state_dict())
    model.load_state_dict(read_safetensors(initial, torch))
    images, labels = images_and_labels(data_dir)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    for chosen in batches_of(os.path.join(folder, "audit")):
        optimizer.zero_grad()
        losses = torch.nn.functional.cross_entropy(model(images[chosen].float() / 255), labels[chosen], reduction="none")
        losses.mean().backward()
        optimizer.step()
        print(losses[:BATCH].mean().item())


def ours(options, folder, kind):
    metrics = os.path.join(folder, f"metrics-{kind}")
    command = [os.path.join(options.bin_dir, "muster"), "--standalone", f"--nproc-per-node={WORLD}",
               f"--log-dir={folder}/logs", os.path.join(options.bin_dir, "fsdp_mlp"), f"--batch-size={BATCH}",
               f"--lr={RATE}", f"--weight-decay={DECAY}", f"--hidden-dim={options.hidden_dim}",
               f"--layers={options.layers}", f"--max-steps={options.steps}", "--epochs=1000",
               f"--init={folder}/init.safetensors", f"--data-dir={options.data_dir}", f"--metrics-file={metrics}",
               f"--param-dtype={kind}", f"--reduce-dtype={kind}"]
    if kind == "fp32":
        command.append(f"--audit-dir={folder}/audit")
    result = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stderr}")
    with open(metrics, encoding="utf-8") as f:
        return [line["loss"] for line in map(json.loads, f) if line["event"] == "step"]


def main():
    if sys.argv[1] == "--torch":
        folder, hidden, layers, data_dir = sys.argv[2:]
        return torch_side(folder, int(hidden), int(layers), data_dir)
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("python", nargs="+")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--hidden-dim", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--data-dir", default="/usr/share/datasets/fashion-mnist")
    options = parser.parse_args()

    def ask(python, *words):
        return subprocess.run([python, *words], check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout

    curves = {}
    with tempfile.TemporaryDirectory() as folder:
        torch_words = [HERE, "--torch", folder, str(options.hidden_dim), str(options.layers), options.data_dir]
        ask(options.python[0], *torch_words)
        here = {f"fsdp_mlp, {kind}": ours(options, folder, kind) for kind in ("fp32", "bf16")}
        for python in options.python:
            version = ask(python, "-c", "import torch; print(torch.__version__)").strip()
            curves[f"PyTorch {version}, fp32"] = [float(line) for line in ask(python, *torch_words).split()]
        curves.update(here)
    peer = next(iter(curves.values()))
    for name, losses in curves.items():
        if len(losses) != options.steps:
            sys.exit(f"{name}: {len(losses)} losses of {options.steps} steps")
    print(f"784-{options.hidden_dim}x{options.layers - 1}-10, AdamW, {WORLD} ranks, batch {BATCH} each, {len(peer)} steps\n")
    print("| Steps | " + " | ".join(curves) + " |")
    print("|---" * (1 + len(curves)) + "|")
    length = max(1, len(peer) // STRETCHES)
    for begin in range(0, len(peer), length):
        end = min(begin + length, len(peer))
        means = [sum(losses[begin:end]) / (end - begin) for losses in curves.values()]
        print(f"| {begin + 1}-{end} | " + " | ".join(f"{mean:.4f}" for mean in means) + " |")
    gaps = [max(abs(a - b) / b for a, b in zip(losses, peer)) for losses in curves.values()]
    print("| greatest difference of a step | " + " | ".join(f"{100 * gap:.2g} %" for gap in gaps) + " |")


if __name__ == "__main__":
    main()
