"""Collectives through muster's group beside Gloo's own functions on the same memory, in the same processes.

usage: collectives_bench.py BIN_DIR [--ranks N]... [--rounds N] [--small]
Ranks on loopback, one thread each. In each round both do the same calls, one after the other, in an order that changes
from round to round. Prints a table for docs/benchmarks.md: medians of a call, and the median of the rounds' ratios.
"""

import argparse
import json
import os
import statistics
import tempfile

from ranks import run_ranks

SIZES = [4 << 10, 64 << 10, 1 << 20, 25 << 20]  # bytes; the last is a bucket of DDP


def measure(options, ranks):
    with tempfile.TemporaryDirectory() as folder:
        sizes = SIZES[:2] if options.small else SIZES
        command = [os.path.join(options.bin_dir, "collectives_load"), f"--folder={folder}", "--elements",
                   *(str(size // 4) for size in sizes), f"--rounds={options.rounds}"]
        if options.small:
            command.append("--block-seconds=0.001")
        return json.loads(run_ranks(command, ranks)[0])


def size_text(size):
    for unit, text in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {text}"
    return "-"


def row(ranks, found):
    own, raw = (statistics.median(found[kind]) * 1e6 for kind in ("own_s", "raw_s"))
    ratio = statistics.median(r / o for o, r in zip(found["own_s"], found["raw_s"]))
    print(f"| {found['name']} | {size_text(found['bytes'])} | {ranks} | {own:,.0f} us | {raw:,.0f} us | {ratio:.2f} "
          f"| {'yes' if ratio >= 0.95 else 'no'} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--ranks", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    if options.small:
        options.rounds = 2
    print("| Collective | Tensor | Ranks | Here | Gloo | As fast as Gloo | Within 5 % |")
    print("|---|---|---|---|---|---|---|")
    for ranks in options.ranks or [2, 4]:
        for found in measure(options, ranks):
            row(ranks, found)
    print(f"\nLoad of the machine at the end: {os.getloadavg()[0]:.1f}")


main()
