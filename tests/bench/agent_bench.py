"""What the agent costs while a job runs: how soon it sees a worker's end, what it uses when nothing happens, what is left
of many restarts. Under three minutes.

usage: agent_bench.py BIN_DIR [--small]
"""

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time

LIMIT_S = 600


def await_that(condition, process, what):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert process.poll() is None, f"muster ended before: {what}"
        assert time.monotonic() < deadline, f"not within {LIMIT_S} s: {what}"
        time.sleep(0.005)


class Bench:
    def __init__(self, bin_dir, folder):
        self.bin, self.folder = bin_dir, folder

    def start(self, name, options, steps):
        return subprocess.Popen(
            [f"{self.bin}/muster", f"--rdzv-id={name}", f"--log-dir={self.folder}/logs", *options,
             f"{self.bin}/muster_test_child", *steps.split()],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def status(self, name):
        with open(f"{self.folder}/logs/{name}/status.json") as f:
            return json.load(f)

    def detection_ms(self, runs):
        """From the worker's last instruction before exit() to the agent's record of its end, which is in whole
        milliseconds: the next full one is taken, so a figure is up to 1 ms too high. Ascending."""
        stamps = f"{self.folder}/stamps"
        os.makedirs(stamps)
        self.start("detect", [f"--max-restarts={runs - 1}"], f"dial then stamp {stamps}/{{round}} then exit 1").wait(LIMIT_S)
        found = []
        for worker in self.status("detect")["workers"]:
            with open(f"{stamps}/{worker['round']}") as f:
                found.append(worker["ended_ms"] + 1 - int(f.read()) / 1e6)
        assert len(found) == runs, f"{len(found)} of {runs} rounds took place"
        return sorted(found)

    def idle(self, workers, seconds):
        """While workers sleep: (share of one core, wake-ups a second, KiB of resident memory) of muster and its guard."""
        job = self.start("idle", [f"--nproc-per-node={workers}"], f"touch {self.folder}/idle-{{rank}} then wait")
        await_that(lambda: all(os.path.exists(f"{self.folder}/idle-{rank}") for rank in range(workers)), job, "all idle")
        time.sleep(0.5)  # what follows the start is no idleness
        agent = [job.pid, *guards_of(job.pid)]
        assert len(agent) == 2, f"processes of the agent: {agent}"
        cpu, woken, since = cpu_ns(agent), wakeups(agent), time.monotonic_ns()
        time.sleep(seconds)
        cpu, woken, took = cpu_ns(agent) - cpu, wakeups(agent) - woken, time.monotonic_ns() - since
        kib = sum(resident_kib(pid) for pid in agent)
        job.send_signal(signal.SIGTERM)
        assert job.wait(LIMIT_S) == 143
        return cpu / took, woken / took * 1e9, kib

    def after_restarts(self, first, last):
        """(descriptors, KiB of resident memory) after so many restarts, and after so many."""
        wait = " ".join(f"if-round {n + 1} then touch {self.folder}/at-{n} then await {self.folder}/go-{n} then end then"
                        for n in (first, last))
        job = self.start("soak", [f"--max-restarts={last + 1}"], f"dial then {wait} exit 1")
        found = []
        for n in (first, last):
            await_that(lambda: os.path.exists(f"{self.folder}/at-{n}"), job, f"{n} restarts")
            found.append((fewest_descriptors(job.pid), resident_kib(job.pid)))
            open(f"{self.folder}/go-{n}", "w").close()
        job.send_signal(signal.SIGTERM)
        job.wait(LIMIT_S)
        newest = self.status("soak")["rounds"][-1]["round"]
        assert newest > last, f"{newest} rounds took place"
        return found


def guards_of(pid):
    """Its children that run its own program."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        children = [int(child) for child in f.read().split()]
    return [child for child in children if os.readlink(f"/proc/{child}/exe") == os.readlink(f"/proc/{pid}/exe")]


def threads_of(pids):
    return [f"/proc/{pid}/task/{thread}" for pid in pids for thread in os.listdir(f"/proc/{pid}/task")]


def cpu_ns(pids):
    total = 0
    for thread in threads_of(pids):
        with open(f"{thread}/schedstat") as f:
            total += int(f.read().split()[0])
    return total


def wakeups(pids):
    """How often it had gone to sleep: each is followed by one."""
    return sum(status_number(thread, "voluntary_ctxt_switches") for thread in threads_of(pids))


def fewest_descriptors(pid, within_s=1):
    """Connections to the worker store close a moment after their workers."""
    deadline, fewest = time.monotonic() + within_s, 1 << 30
    while time.monotonic() < deadline:
        fewest = min(fewest, len(os.listdir(f"/proc/{pid}/fd")))
        time.sleep(0.05)
    return fewest


def resident_kib(pid):
    return status_number(f"/proc/{pid}", "VmRSS")


def status_number(folder, name):
    with open(f"{folder}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(name + ":"))


def percent(part, whole):
    return 100 * (part - whole) / whole


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--small", action="store_true", help="a few runs, and no judgement of what depends on the machine")
    own = parser.parse_args()
    runs, workers, idle_s, restarts = (10, 2, 1, 30) if own.small else (100, 8, 20, 1000)
    rows = []
    load, since = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="muster-agent-bench-") as folder:
        bench = Bench(own.bin_dir, folder)
        ends = bench.detection_ms(runs)
        p99 = ends[max(0, len(ends) * 99 // 100 - 1)]
        rows.append((f"a worker's end is seen, p50 of {runs}", f"{ends[(len(ends) - 1) // 2]:.1f} ms", "", None))
        rows.append(("the same, p99", f"{p99:.1f} ms", "under 5 ms", p99 < 5))
        share, woken, kib = bench.idle(workers, idle_s)
        rows.append((f"agent of {workers} idle workers", f"{100 * share:.3f} % of a core", "under 0.1 %", share < 0.001))
        rows.append(("the same, wake-ups", f"{woken:.1f} a second", "", None))
        rows.append(("the same, resident memory with its guard", f"{kib:,} KiB", "", None))
        (fds, kib), (fds_then, kib_then) = bench.after_restarts(10, restarts)
        rows.append((f"descriptors after {restarts:,} restarts, beside 10", f"{fds_then} beside {fds}", "within 5 %",
                     abs(percent(fds_then, fds)) <= 5))
        rows.append(("resident memory, the same", f"{kib_then:,} beside {kib:,} KiB ({percent(kib_then, kib):+.1f} %)",
                     "within 5 %", percent(kib_then, kib) <= 5))
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after {time.monotonic() - since:.0f} s")
    print("| What | Here | Target | Held |\n|---|---|---|---|")
    for what, here, target, held in rows:
        print(f"| {what} | {here} | {target} | {'' if held is None else 'yes' if held else 'no'} |")
    # What a busy machine cannot change holds in the small run too.
    assert fds_then == fds, f"{fds_then - fds} descriptors leaked in {restarts - 10} restarts"


if __name__ == "__main__":
    main()
