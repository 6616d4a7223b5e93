"""Our worker store beside PyTorch's own server, under the same clients in the same run.

usage: store_bench.py BIN_DIR [--python PYTHON]... [--repeat N] [--small] | --scale CLIENTS [--p99-ms N] [--bytes N]

Two kinds of clients: the native load generator (store_load), for servers that speak dialect C (ours, and PyTorch's
from 2.1 on), and PyTorch's own client from one process. PYTHON is an interpreter that has PyTorch. Each figure is
the median of N runs, the servers taking turns. The floor is a server that reads and answers without looking
(store_floor): what the kernel and the clients leave for any store.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.abspath(__file__)
SERVE = """
import sys
from datetime import timedelta
import torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60), wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.read()
"""
TICKS = os.sysconf("SC_CLK_TCK")


def python_client(port, limit_s):
    """Runs inside the interpreter that has PyTorch."""
    from datetime import timedelta

    import torch.distributed as dist
    store = dist.TCPStore("127.0.0.1", port, None, False, timedelta(seconds=60), wait_for_workers=False)
    value = "v" * 64
    store.set("k", value)
    calls = {"set": lambda: store.set("k", value), "get": lambda: store.get("k"), "add": lambda: store.add("n", 1)}
    if hasattr(store, "check"):
        calls["check"] = lambda: store.check(["k"])
    found = {}
    for name, call in calls.items():
        spans, begin = [], time.perf_counter()
        last = begin
        while last - begin < limit_s:
            call()
            now = time.perf_counter()
            spans.append(now - last)
            last = now
        store.add("n", 0)  # sets have no reply: the server has taken them all when this one comes
        spans.sort()
        found[name] = {"per_s": len(spans) / (time.perf_counter() - begin), "p50_us": spans[len(spans) // 2] * 1e6,
                       "p99_us": spans[len(spans) * 99 // 100] * 1e6}
    print(json.dumps(found))


class Server:
    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self):
        self.process.stdin.close()
        self.process.wait(30)


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stderr}")
    return json.loads(result.stdout)


def connections(load, server, count):
    """The load generator holds its connections until its input ends."""
    before, cpu = server.resident(), server.cpu_s()
    with subprocess.Popen([load, "--port", str(server.port), "--clients", str(count), "connections"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        line = client.stdout.readline()
        if not line:
            sys.exit(f"{count} connections at {server.name}: not all were served")
        found = json.loads(line)
        found["bytes"] = (server.resident() - before) / count
        client.stdin.close()
    found["cpu_s"] = server.cpu_s() - cpu
    return found


def at_scale(options):
    """As many clients as a large job has, each with a request under way: what one waits, and what one costs."""
    server = Server("ours", [os.path.join(options.bin_dir, "store_server")])
    load = os.path.join(options.bin_dir, "store_load")
    found = connections(load, server, options.scale)
    found.update(run([load, "--port", str(server.port), "check", "--clients", str(options.scale), "--limit", "2"]))
    server.stop()
    print(json.dumps(found))
    if found["p99_us"] > 1000 * options.p99_ms or found["bytes"] > options.bytes:
        sys.exit(f"{options.scale} clients: the 99th percentile of a CHECK may take {options.p99_ms} ms, a client "
                 f"{options.bytes} bytes of the server")


REPLY_BYTES = {"set": 1, "get": 72, "add": 8, "check": 1}  # of store_load's requests


def measures(small):
    limit = 0.1 if small else 2
    for op in REPLY_BYTES:
        yield f"{op.upper()}, 64 clients", [op, "--clients", "64", "--limit", str(limit)]
    for op in ("get", "add", "check"):
        yield f"{op.upper()}, 64 clients, 16 at once", [op, "--clients", "64", "--depth", "16", "--limit", str(limit)]
    yield "WAIT wake-up, 1 waiter", ["wake", "--clients", "1", "--limit", str(limit)]
    yield "WAIT wake-up, 64 waiters", ["wake", "--clients", "64", "--limit", str(limit)]
    for n in (8,) if small else (64, 256, 1000):
        yield f"gloo mesh, {n} ranks", ["mesh", "--clients", str(n)]
    if not small:
        yield "CHECK, 10,000 clients", ["check", "--clients", "10000", "--limit", str(limit)]
    n = 50 if small else 1000
    yield f"wake-up beside {n} CHECKs/s", ["monitor", "--clients", str(n), "--limit", str(limit * 2)]


def one_turn(bin_dir, server, native, python, small):
    load, found = os.path.join(bin_dir, "store_load"), {}
    if native:
        print(f"{server.name}: connections", file=sys.stderr)
        found["connections"] = connections(load, server, 200 if small else 10000)
        for name, words in measures(small):
            cpu = server.cpu_s()
            print(f"{server.name}: {name}", file=sys.stderr)
            found[name] = run([load, "--port", str(server.port), *words])
            found[name]["cpu"] = (server.cpu_s() - cpu) / found[name]["s"]
    if python:
        for op, figures in run([python, HERE, "--client", str(server.port), "0.1" if small else "1"]).items():
            found[f"PyTorch client: {op}"] = figures
    return found


def floor_turn(bin_dir, small):
    found = {}
    for name, words in measures(small):
        if words[0] not in REPLY_BYTES or "--depth" in words:
            continue
        print(f"floor: {name}", file=sys.stderr)
        server = Server("floor", [os.path.join(bin_dir, "store_floor"), str(REPLY_BYTES[words[0]])])
        found[name] = run([os.path.join(bin_dir, "store_load"), "--port", str(server.port), *words])
        server.stop()
    return found


def median(turns, name, figure):
    return statistics.median(turn[name][figure] for turn in turns)


def print_tables(label, ours, theirs, floor):
    print(f"\n#### Beside {label}\n" if theirs else "\n#### Alone\n")
    print("| What | ours, per s | peer, per s | ratio | floor's ratio | ours p50 / p99 | peer p50 / p99 | CPU ours / peer |")
    print("|---|---|---|---|---|---|---|---|")
    for name in ours[0]:
        if name == "connections":
            continue
        cells = [name]
        rates = [median(turns, name, "per_s") if turns else None for turns in (ours, theirs)]
        cells += [f"{rate:,.0f}" if rate else "-" for rate in rates]
        cells.append(f"{rates[0] / rates[1]:.2f}" if rates[1] else "-")
        has_floor = rates[1] and floor and name in floor[0]
        cells.append(f"{median(floor, name, 'per_s') / rates[1]:.2f}" if has_floor else "-")
        for turns in (ours, theirs):
            cells.append(f"{median(turns, name, 'p50_us'):.0f} / {median(turns, name, 'p99_us'):.0f} us" if turns else "-")
        has_cpu = "cpu" in ours[0][name]
        cells.append(" / ".join(f"{100 * median(turns, name, 'cpu'):.0f} %" for turns in (ours, theirs) if turns)
                     if has_cpu else "-")
        print("| " + " | ".join(cells) + " |")
    if "connections" not in ours[0]:
        return
    print("\n| Connections | opened | all served | memory each | server's CPU |")
    print("|---|---|---|---|---|")
    for name, turns in (("ours", ours), ("peer", theirs)):
        if turns:
            print(f"| {name}, {turns[0]['connections']['connections']:,} | {median(turns, 'connections', 'open_s'):.2f} s | "
                  f"{median(turns, 'connections', 'served_s'):.2f} s | {median(turns, 'connections', 'bytes'):,.0f} B | "
                  f"{median(turns, 'connections', 'cpu_s'):.2f} s |")


def torch_version(python):
    result = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else None


def leave_the_network():
    """PyTorch's server asks the name server for the name of each client, which takes it up to a tenth of a second.
    Where there is no network it hears at once that there is none, so both servers run in such a place."""
    if "MUSTER_BENCH_ALONE" in os.environ:
        return
    alone = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        print("no network namespace can be made: the peer's connections may wait for a name server", file=sys.stderr)
        return
    os.environ["MUSTER_BENCH_ALONE"] = "1"
    os.execvp(alone[0], [*alone, sys.executable, *sys.argv])


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--client":
        return python_client(int(sys.argv[2]), float(sys.argv[3]))
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--scale", type=int, help="only so many clients of our server, within these bounds")
    parser.add_argument("--p99-ms", type=float, default=6000)
    parser.add_argument("--bytes", type=float, default=4096)
    options = parser.parse_args()
    if options.scale:
        return at_scale(options)
    leave_the_network()
    turns = 1 if options.small else options.repeat
    our_command = [os.path.join(options.bin_dir, "store_server")]
    peers = [(python, torch_version(python)) for python in options.python]
    for python, version in peers:
        if not version:
            print(f"left out: {python} has no PyTorch")
    peers = [peer for peer in peers if peer[1]]
    for python, version in peers or [(None, None)]:
        native = not python or tuple(int(n) for n in version.split(".")[:2]) >= (2, 1)
        ours, theirs, floor = [], [], []
        for _ in range(turns):
            if native:
                floor.append(floor_turn(options.bin_dir, options.small))
            for found, command in ((ours, our_command), (theirs, [python, "-c", SERVE])):
                if command[0] is None:
                    continue
                server = Server(command[0], command)
                found.append(one_turn(options.bin_dir, server, native, python, options.small))
                server.stop()
        print_tables(f"PyTorch {version}'s server", ours, theirs, floor)


main()
