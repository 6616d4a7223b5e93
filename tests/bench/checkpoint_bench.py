"""Sharded checkpoints beside torch.distributed.checkpoint, on the same tensors and disk, and beside dd with fsync.

usage: checkpoint_bench.py BIN_DIR [--torch PYTHON] [--folder FOLDER] [--rounds N] [--small]
Two workers, each with half of the rows of fsdp_mlp's parameters and Adam's moments. The programs take turns, N times.
Prints a table for docs/benchmarks.md, and the load of the machine.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WORKERS = 2
LIMIT_S = 900


def job(options, folder, *program):
    """Runs the workers; what rank 0 has printed behind RESULT."""
    command = [os.path.join(options.bin, "muster"), "--standalone", f"--nproc-per-node={WORKERS}",
               f"--log-dir={folder}/logs", *program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    for line in done.stdout.splitlines():
        if "RESULT " in line:
            return json.loads(line.split("RESULT ", 1)[1])
    sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def dd_write_s(source, target):
    start = time.perf_counter()
    subprocess.run(["dd", f"if={source}", f"of={target}", "bs=1M", "conv=fsync"], check=True, capture_output=True)
    return time.perf_counter() - start


def dd_read_s(path):
    """Reads the file from the disk, past the page cache."""
    start = time.perf_counter()
    subprocess.run(["dd", f"if={path}", "of=/dev/null", "bs=4M", "iflag=direct"], check=True, capture_output=True)
    return time.perf_counter() - start


def beside_dd(options, folder):
    """Mean of a step while dd writes to the same disk without a pause, past the page cache and as modestly as can be."""
    over = threading.Event()

    def write():
        while not over.is_set():
            subprocess.run(["nice", "-n19", "dd", "if=/dev/zero", f"of={folder}/dd", "bs=4M", "count=40", "oflag=direct"],
                           check=True, capture_output=True)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        own = job(options, folder, os.path.join(options.bin, "checkpoint_load"), f"--folder={folder}/none",
                  f"--hidden={options.hidden}", "--repeat=0", f"--steps={2 * options.steps}")
    finally:
        over.set()
        writer.join()
        os.remove(f"{folder}/dd")
    return statistics.mean(own["calm_steps_s"])


def gather(options, folder, size):
    """Seconds of each kind, over all rounds."""
    found = {"dd": [], "dd_read": [], "beside_dd": [], "own": {}, "torch": {}}
    shm = tempfile.mkdtemp(dir="/dev/shm")
    try:
        with open(f"{shm}/data", "wb") as f:
            f.write(os.urandom(1 << 20) * (size >> 20))
        for _ in range(options.rounds):
            found["dd"].append(dd_write_s(f"{shm}/data", f"{folder}/dd"))
            found["dd_read"].append(dd_read_s(f"{folder}/dd"))
            os.remove(f"{folder}/dd")
            own = job(options, folder, os.path.join(options.bin, "checkpoint_load"), f"--folder={folder}/own",
                      f"--hidden={options.hidden}", "--repeat=4", f"--steps={options.steps}")
            for name, values in own.items():
                found["own"].setdefault(name, []).extend(values if isinstance(values, list) else [values])
            shutil.rmtree(f"{folder}/own")
            found["beside_dd"].append(beside_dd(options, folder))
            if options.torch:
                peer = job(options, folder, options.torch, os.path.join(HERE, "torch_checkpoint.py"),
                           f"--folder={folder}", f"--hidden={options.hidden}", "--repeat=2")
                for name, values in peer.items():
                    found["torch"].setdefault(name, []).extend(values if isinstance(values, list) else [values])
    finally:
        shutil.rmtree(shm)
    return found


def row(what, own_s, peer_s, size, target, ratio, holds):
    peer = "-" if peer_s is None else f"{peer_s:.2f} s"
    print(f"| {what} | {own_s:.2f} s ({size / own_s / 1e6:,.0f} MB/s) | {peer} | {ratio:.2f} | {target} | "
          f"{'yes' if holds else 'NO'} |", flush=True)


def report(found):
    own = {name: statistics.median(values) for name, values in found["own"].items()}
    size = own["bytes"]
    print(f"{size / 1e6:,.0f} MB in all, {WORKERS} workers, load {os.getloadavg()[0]:.1f}"
          + (f", PyTorch {found['torch']['torch'][0]}" if found["torch"] else ""))
    print("\n| What | muster | Peer | Ratio | Target | Held |\n|---|---|---|---|---|---|")
    if found["torch"]:
        for name, what in (("save_s", "save"), ("load_s", "load, files in the page cache"),
                           ("cold_load_s", "load, files on disk alone")):
            peer = statistics.median(found["torch"][name])
            row(what, own[name], peer, size, 2, peer / own[name], peer / own[name] >= 2)
    dd = statistics.median(found["dd"])
    row("save beside dd with fsync", own["save_s"], dd, size, 0.7, dd / own["save_s"], dd / own["save_s"] >= 0.7)
    read = statistics.median(found["dd_read"])
    print(f"| load from the disk beside dd that reads | {own['cold_load_s']:.2f} s | {read:.2f} s | "
          f"{read / own['cold_load_s']:.2f} | - | - |")
    calm, saving = own["calm_steps_s"], statistics.mean(found["own"]["saving_steps_s"])
    calm_mean = statistics.mean(found["own"]["calm_steps_s"])
    steps = len(found["own"]["saving_steps_s"])
    bare = saving - sum(found["own"]["copy_s"]) / steps
    print(f"\nMean of a step: {calm_mean * 1e3:.1f} ms; while a save is written in the background {bare * 1e3:.1f} ms "
          f"({100 * (bare / calm_mean - 1):+.1f} %, target: at most +10 %). The copy at its start takes "
          f"{own['copy_s'] * 1e3:.0f} ms; shared out over the {steps / len(found['own']['copy_s']):.0f} steps that a save "
          f"lasts, {saving * 1e3:.1f} ms ({100 * (saving / calm_mean - 1):+.1f} %). Medians: {calm * 1e3:.1f} ms and "
          f"{own['saving_steps_s'] * 1e3:.1f} ms. Beside a dd that does nothing but write to the same disk: "
          f"{100 * (statistics.mean(found['beside_dd']) / calm_mean - 1):+.1f} %.")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--torch", help="a Python that has a current PyTorch, for the comparison")
    parser.add_argument("--folder", help="on the disk that is measured")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--small", action="store_true", help="small numbers: only to see that it works")
    options = parser.parse_args()
    if options.small:
        options.rounds, options.hidden, options.steps = 1, 64, 5
    folder = tempfile.mkdtemp(prefix="muster-checkpoint-bench-", dir=options.folder)
    parameters = sum(out * (width + 1) for width, out in
                     zip([784] + [options.hidden] * 7, [options.hidden] * 7 + [10]))
    try:
        report(gather(options, folder, 12 * parameters))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
