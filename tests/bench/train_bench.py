"""The reference trainers beside PyTorch, on the same data, with the same models, batches and number of threads.

usage: train_bench.py BIN_DIR [--python PYTHON]... [--repeat N] [--ddp-steps N] [--fsdp-steps N] [--small] [--data-dir DIR]

Two ranks of one thread each, batch 64 a rank, over Gloo on loopback. Each figure is the median of N runs, the programs
taking turns. PYTHON is an interpreter that has PyTorch; fully_shard is compared with where it has that.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from ranks import run_ranks

HERE = os.path.dirname(os.path.abspath(__file__))
WORLD, BATCH = 2, 64


def ours(options, program, steps, more):
    with tempfile.TemporaryDirectory() as folder:
        metrics = os.path.join(folder, "metrics")
        run_ranks([os.path.join(options.bin_dir, program), f"--data-dir={options.data_dir}", f"--batch-size={BATCH}",
                   "--epochs=1000", f"--max-steps={steps}", f"--metrics-file={metrics}", "--quiet", *more], WORLD)
        with open(metrics, encoding="utf-8") as f:
            epochs = [line for line in map(json.loads, f) if line["event"] == "epoch"]
    return epochs[-1]["samples_per_s"]


def theirs(options, python, kind, steps, widths):
    return float(run_ranks([python, os.path.join(HERE, "torch_train.py"), kind, options.data_dir, str(steps), widths,
                            str(BATCH)], WORLD)[0])


def version_of(python):
    code = "import torch; print(torch.__version__); from torch.distributed.fsdp import fully_shard; print('fsdp2')"
    result = subprocess.run([python, "-c", code], capture_output=True, text=True)
    words = result.stdout.split()
    return (words[0] if words else None, "fsdp2" in words)


def row(name, turns):
    (_, our_rates), *peers = turns
    here = statistics.median(our_rates)
    cells = [name, f"{here:,.0f}"]
    for _, rates in peers:
        cells.append(f"{statistics.median(rates):,.0f} ({here / statistics.median(rates):.2f}x)" if rates else "-")
    print("| " + " | ".join(cells) + " |")


def measure(repeat, programs):
    """Samples a second of each of the (name, function) pairs, taking turns."""
    rates = [(name, []) for name, _ in programs]
    for _ in range(repeat):
        for (_, found), (name, function) in zip(rates, programs):
            if function:
                print(name, file=sys.stderr)
                found.append(function())
    return rates


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--ddp-steps", type=int, default=1400)
    parser.add_argument("--fsdp-steps", type=int, default=20)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--data-dir", default="/usr/share/datasets/fashion-mnist")
    options = parser.parse_args()
    peers = [(python, *version_of(python)) for python in options.python]
    peers = [peer for peer in peers if peer[1]]
    repeat = 1 if options.small else options.repeat
    ddp_steps, fsdp_steps = (20, 2) if options.small else (options.ddp_steps, options.fsdp_steps)
    hidden = 64 if options.small else 2048
    widths = "-".join(["784"] + 7 * [str(hidden)] + ["10"])

    print(f"Samples a second of {WORLD} ranks, batch {BATCH} each, one thread each.\n")
    print("| " + " | ".join(["What", "here"] + [f"PyTorch {version}" for _, version, _ in peers]) + " |")
    print("|---" * (2 + len(peers)) + "|")
    row("DDP, 784-256-10, Adam", measure(repeat, [("ddp_mnist", lambda: ours(options, "ddp_mnist", ddp_steps, []))] + [
        (f"PyTorch {version}", lambda p=python: theirs(options, p, "ddp", ddp_steps, "784-256-10"))
        for python, version, _ in peers]))
    row(f"FSDP, 784-{hidden}x7-10, AdamW, fp32", measure(repeat, [
        ("fsdp_mlp", lambda: ours(options, "fsdp_mlp", fsdp_steps, [f"--hidden-dim={hidden}", "--param-dtype=fp32",
                                                                    "--reduce-dtype=fp32"]))] + [
        (f"PyTorch {version}", (lambda p=python: theirs(options, p, "fsdp", fsdp_steps, widths)) if shards else None)
        for python, version, shards in peers]))


main()
