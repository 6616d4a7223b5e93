"""How fast workers' lines go to files and to the console, beside the same lines through `cat` into a file.

usage: log_bench.py BIN [--workers N] [--lines N] [--runs N] [--small]

Each run measures all ways in turn. Nothing may be missing: every file and the console are counted.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BYTES = 100


def newlines(path):
    count = 0
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            count += block.count(b"\n")
    return count


def measured(command, stdout):
    """Seconds; CPU seconds of it and of what it waited for; MiB of the largest resident size."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE)
    stdout.close()
    log = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{log[-3000:]}")
    if "are missing" in log or "are lost" in log:
        sys.exit(f"lines were lost:\n{log[-3000:]}")
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def through_cat(args, folder):
    path = os.path.join(folder, "cat")
    writer = f"{args.bin}/line_writer {args.lines} {BYTES}"
    script = f"( {' '.join([writer + ' &'] * args.workers)} wait ) | cat > {path}"
    took, cpu, _ = measured(["/bin/sh", "-c", script], open(os.devnull, "wb"))
    found = newlines(path)
    os.remove(path)
    if found != args.lines * args.workers:
        sys.exit(f"cat: {found} lines")
    return took, cpu, None


def through_muster(args, folder, options):
    logs, console = os.path.join(folder, "logs"), os.path.join(folder, "console")
    command = [f"{args.bin}/muster", "--standalone", f"--nproc-per-node={args.workers}", "--rdzv-id=bench",
               f"--log-dir={logs}", *options, f"{args.bin}/line_writer", str(args.lines), str(BYTES)]
    # The console is a pipe with a reader, as under a scheduler.
    reader = subprocess.Popen(["wc", "-l"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    took, cpu, peak = measured(command, reader.stdin)
    shown = int(reader.stdout.read())
    reader.wait()
    for rank in range(args.workers):
        found = newlines(f"{logs}/bench/round-1/rank-{rank}/stdout.log")
        if found != args.lines:
            sys.exit(f"rank {rank}: {found} lines in its file")
    expected = 0 if "-r" in options else args.lines * args.workers
    if shown != expected:
        sys.exit(f"{shown} lines on the console")
    shutil.rmtree(logs)
    return took, cpu, peak


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="only to see that all of it works")
    args = parser.parse_args()
    if args.small:
        args.workers, args.lines, args.runs = 2, 20_000, 1
    ways = {
        "cat into a file": lambda folder: through_cat(args, folder),
        "muster, files alone (-r 3)": lambda folder: through_muster(args, folder, ["-r", "3"]),
        "muster, files and console": lambda folder: through_muster(args, folder, []),
        "muster, the same with prefix (-t 3)": lambda folder: through_muster(args, folder, ["-t", "3"]),
    }
    samples = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="muster-log-bench-") as folder:
        for _ in range(args.runs):
            for name, measure in ways.items():
                samples[name].append(measure(folder))
    megabytes = args.workers * args.lines * BYTES / 1e6
    base = statistics.median(took for took, _, _ in samples["cat into a file"])
    print(f"{args.workers} workers, {args.lines} lines of {BYTES} bytes each ({megabytes:.0f} MB), "
          f"median of {args.runs}, load {os.getloadavg()[0]:.1f}\n")
    print("| | Seconds | MB/s | Of cat's throughput | CPU seconds, writers included | Peak memory |")
    print("|---|---|---|---|---|---|")
    for name, taken in samples.items():
        took = statistics.median(t for t, _, _ in taken)
        cpu = statistics.median(c for _, c, _ in taken)
        peak = "" if taken[0][2] is None else f"{max(p for _, _, p in taken):.1f} MiB"
        print(f"| {name} | {took:.2f} | {megabytes / took:.0f} | {base / took:.2f} | {cpu:.2f} | {peak} |")


main()
