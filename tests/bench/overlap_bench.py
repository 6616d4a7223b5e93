"""Steps of data-parallel training with gradients in buckets beside steps with one all-reduce at the end.

usage: overlap_bench.py BIN_DIR [--rounds N] [--small]
Two ranks, one thread each, batch 64 a rank, 784-2048x7-10 (107 MB of gradients). Over loopback as it is, and over loopback
held to a rate in a network namespace that ends with the run (root only). Prints a table for docs/benchmarks.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

from ranks import run_ranks

RATES_GBIT = [10, 2.5]  # in each of two directions


def held_to(gbit):
    """A command in front of this program: loopback of its own, both directions together held to twice the rate."""
    return ["unshare", "--net", "sh", "-c",
            f"ip link set lo up && tc qdisc replace dev lo root tbf rate {2 * gbit}gbit burst 512k latency 50ms && exec \"$@\"",
            "sh"]


def rates_work():
    return subprocess.run([*held_to(1), "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def measure(options, front):
    command = [*front, sys.executable, os.path.abspath(__file__), options.bin_dir, "--one", f"--rounds={options.rounds}"]
    if options.small:
        command.append("--small")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {kind: statistics.median(times) * 1e3 for kind, times in json.loads(done.stdout).items()}


def row(network, found):
    buckets, at_the_end, alone = (found[kind] for kind in ("buckets_s", "at_the_end_s", "alone_s"))
    print(f"| {network} | {alone:,.0f} ms | {at_the_end:,.0f} ms | {buckets:,.0f} ms | {buckets / at_the_end:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        size = ["--hidden=64", "--steps=2"] if options.small else []
        print(run_ranks([os.path.join(options.bin_dir, "ddp_overlap"), f"--rounds={options.rounds}", *size], 2)[0])
        return
    options.rounds = 1 if options.small else options.rounds
    print("| Network | No reduction | One all-reduce at the end | In buckets | In buckets / at the end |")
    print("|---|---|---|---|---|")
    row("loopback", measure(options, []))
    if rates_work():
        for gbit in RATES_GBIT[:1] if options.small else RATES_GBIT:
            row(f"{gbit} Gbit/s in each direction", measure(options, held_to(gbit)))
    else:
        print("\nNo rows over a slower network: network namespaces with a token bucket filter (tc) are not allowed here.")


main()
