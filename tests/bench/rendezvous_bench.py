"""The rendezvous under many agents, against its targets and beside torchrun's own.

usage: rendezvous_bench.py BIN_DIR [--torch PYTHON] [--quick]
Prints a table for docs/benchmarks.md.
"""

import argparse
import json
import os
import subprocess
import sys

PEER_LIMIT_S = 60


def load(options, *words):
    done = subprocess.run([os.path.join(options.bin, "rendezvous_load"), "--json", *map(str, words)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"rendezvous_load {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def row(what, figure, target, unit, holds):
    print(f"| {what} | {figure} {unit} | {target} {unit} | {'yes' if holds else 'NO'} |", flush=True)


def below(what, figure, target, unit):
    row(what, f"{figure:.2f}", f"under {target}", unit, figure < target)


def own_figures(options):
    few, many, idle_s = (200, 500, 5) if options.quick else (1000, 10000, 20)
    print("| What | Here | Target | Held |\n|---|---|---|---|")
    small = load(options, "--agents", few, "--lose-one")
    large = load(options, "--agents", many, "--idle", idle_s)
    below(f"{few:,} agents, first connect to last assignment", small["formed_s"], 0.5, "s")
    below(f"{many:,} agents, the same", large["formed_s"], 3, "s")
    below(f"daemon memory per agent, {many:,} agents", large["daemon_kb_per_agent"], 16, "KB")
    below(f"re-forming {few:,} agents after one loss, beyond the settle window", small["reform_beyond_settle_s"], 0.3, "s")
    below(f"daemon while {many:,} agents are idle", large["idle_percent_of_a_core"], 5, "% of a core")
    for name, figures in ((few, small), (many, large)):
        print(f"| processor time for {name:,} agents: daemon, load | {figures['daemon_cpu_s']:.2f} s, "
              f"{figures['load_cpu_s']:.2f} s | | |")
        print(f"| connections per agent at {name:,} | {figures['connections_per_agent']:.2f} | 1 | "
              f"{'yes' if figures['connections_per_agent'] == 1 else 'NO'} |")
        print(f"| messages per agent at {name:,}: out, in | {figures['messages_out_per_agent']:.1f}, "
              f"{figures['messages_in_per_agent']:.1f} | O(1) | |")
        print(f"| bytes per agent at {name:,}: out, in | {figures['bytes_out_per_agent']:.0f}, "
              f"{figures['bytes_in_per_agent']:.0f} | O(1) | |")


def torch_s(options, agents, limit_s):
    """(seconds, why there are none)."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_rendezvous.py")
    done = subprocess.run([options.torch, script, str(agents), str(limit_s)], capture_output=True, text=True, check=False)
    words = done.stdout.split()
    if not words:  # PyTorch's threads crash now and then
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return None, f"ended with code {done.returncode}: {last}"
    return (None, f"not within {PEER_LIMIT_S} s") if words[-1] == "late" else (float(words[-1]), "")


def beside_torchrun(options):
    """Twice as many agents each time, until the peer needs more than its limit."""
    print("\n| Agents | torchrun's dynamic rendezvous | muster | Ratio |\n|---|---|---|---|")
    agents = 4
    while True:
        peer_s, why = torch_s(options, agents, 5 if options.quick else PEER_LIMIT_S)
        own_s = load(options, "--agents", agents)["formed_s"]
        if peer_s is None:
            print(f"| {agents} | {why} | {own_s:.3f} s | |")
            return
        print(f"| {agents} | {peer_s:.2f} s | {own_s:.3f} s | {peer_s / own_s:.0f} |", flush=True)
        if options.quick:
            return
        agents *= 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--torch", help="a Python that has PyTorch, for the comparison")
    parser.add_argument("--quick", action="store_true", help="small numbers: only to see that it works")
    options = parser.parse_args()
    own_figures(options)
    if options.torch:
        beside_torchrun(options)
    else:
        print("\nno comparison with torchrun: no Python with PyTorch was found")


if __name__ == "__main__":
    main()
