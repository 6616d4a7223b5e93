"""The trainers on CPU and GPU from the same start: losses of each step, and the parameters at the end.

usage: gpu_training.py BIN_DIR GPUS [STEPS]    called by scripts/gpu-check, which says first whether there is a GPU
Prints a line for each comparison and exits 1 if any does not hold.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import time

STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 100
# Relative. Adam makes a whole step of a gradient whose sign is a matter of rounding: two right answers lie 1e-9 apart at
# the first step, 2e-7 at the 60th, and 1e-4 at the 100th (double against single precision).
LOSS_TOLERANCE = 1e-4
LOSS_TOLERANCE_LATER = 1e-3
LATER = 50  # steps
PARAMETER_TOLERANCE = 1e-3  # of a tensor's greatest
DDP = ["ddp_mnist", "--epochs=1"]
FSDP = ["fsdp_mlp", "--epochs=1", "--hidden-dim=128", "--layers=4", "--min-num-params=10000", "--param-dtype=fp32",
        "--reduce-dtype=fp32"]


def losses(path):
    with open(path, encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    return [event["loss"] for event in events if event["event"] == "step"]


def tensors(path):
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        found[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return found


def run(folder, bin_dir, words, name, workers):
    """One training to its end; its losses, its parameters and its seconds."""
    metrics, export = os.path.join(folder, name + ".jsonl"), os.path.join(folder, name + ".safetensors")
    command = [os.path.join(bin_dir, words[0]), *words[1:], f"--max-steps={STEPS}", "--quiet",
               f"--metrics-file={metrics}", f"--export={export}"]
    if workers > 1:
        command = [os.path.join(bin_dir, "muster"), "--standalone", f"--nproc-per-node={workers}",
                   f"--log-dir={folder}/logs-{name}", *command]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if done.returncode != 0:
        sys.exit(f"gpu-check: {' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return losses(metrics), tensors(export), time.monotonic() - start


def difference(expected, actual):
    """A sentence, or nothing."""
    if len(expected[0]) != STEPS or len(actual[0]) != STEPS:
        return f"{len(expected[0])} and {len(actual[0])} steps, not {STEPS}"
    for step, (want, have) in enumerate(zip(expected[0], actual[0]), 1):
        if not abs(want - have) <= (LOSS_TOLERANCE if step <= LATER else LOSS_TOLERANCE_LATER) * abs(want):
            return f"loss of step {step} is {have}, expected {want}"
    for name, values in expected[1].items():
        greatest = max(abs(value) for value in values)
        worst = max(abs(want - have) for want, have in zip(values, actual[1][name]))
        if not worst <= PARAMETER_TOLERANCE * greatest:
            return f"{name} differs by {worst}, its greatest is {greatest}"
    return None


def main():
    bin_dir, gpus = sys.argv[1], int(sys.argv[2])
    faults = 0
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        for program, words in (("ddp_mnist", DDP), ("fsdp_mlp", FSDP)):
            for workers in sorted({1, gpus}):
                expected = run(folder, bin_dir, words, f"{program}-{workers}-cpu", workers)
                for backend in ("nccl", "gloo"):
                    name = f"{program}-{workers}-{backend}"
                    actual = run(folder, bin_dir, [*words, "--device=cuda", f"--backend={backend}"], name, workers)
                    fault = difference(expected, actual)
                    faults += fault is not None
                    what = f"{program}, {STEPS} steps, {workers} GPU{'s' if workers > 1 else ''}, {backend}"
                    print(f"{what:<44} {fault or 'the same as on the CPU'}  "
                          f"(CPU {expected[2]:.1f} s, GPU {actual[2]:.1f} s, start-up included)", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
