"""Proof 5, nothing left: no process, listening port, temporary file or shared memory of the job; descriptors and memory
of launchers and daemons flat over the rounds.
"""

import os
import threading
import time

LEAVE_S = 20  # a hosted daemon leaves some seconds after its last job
MAX_MORE_DESCRIPTORS = 16
MAX_MORE_KIB = 8 << 10
MIN_SAMPLES = 16
SAMPLE_EVERY_S = 0.5


class UseSampler:
    """What each launcher and daemon uses, twice a second: {pid: [(descriptors, KiB)]}."""

    def __init__(self, pids):
        self._pids, self.samples = pids, {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        self._stopped.set()
        self._thread.join()

    def _run(self):
        while not self._stopped.wait(SAMPLE_EVERY_S):
            for pid in self._pids():
                try:
                    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
                    with open(f"/proc/{pid}/statm") as f:
                        kib = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 10
                except OSError:
                    continue
                if descriptors:  # none: it is a zombie
                    self.samples.setdefault(pid, []).append((descriptors, kib))


def growth(samples):
    """Between the second quarter and the last one, from trough to trough: rounds come and go in between."""
    quarter = len(samples) // 4
    early, late = samples[quarter:2 * quarter], samples[-quarter:]
    return tuple(min(s[i] for s in late) - min(s[i] for s in early) for i in (0, 1))


def check_flat(run):
    worst = (0, 0)
    for pid, samples in run.use.samples.items():
        if len(samples) < MIN_SAMPLES:
            continue
        descriptors, kib = growth(samples)
        assert descriptors <= MAX_MORE_DESCRIPTORS, f"left: pid {pid} has {descriptors} more descriptors than before"
        assert kib <= MAX_MORE_KIB, f"left: pid {pid} uses {kib} KiB more than before"
        worst = (max(worst[0], descriptors), max(worst[1], kib))
    return worst


def check_processes(run):
    deadline = time.monotonic() + LEAVE_S
    while found := run.processes():
        if time.monotonic() > deadline:
            names = {pid: open(f"/proc/{pid}/cmdline").read().replace("\0", " ") for pid in found}
            raise AssertionError(f"left: {names}")
        time.sleep(0.05)


def check_ports(run):
    if not run.lab.real:
        return
    for name, host in run.hosts.items():
        listening = host.run("ss", "-Htln").strip()
        assert not listening, f"left: on {name} something listens: {listening}"


def check_files(run):
    left = os.listdir(run.temporary)
    assert not left, f"left: temporary files {left}"
    if run.succeeded() and os.path.isdir(f"{run.folder}/checkpoint"):
        torn = [entry for entry in os.listdir(f"{run.folder}/checkpoint") if entry.startswith(".tmp-")]
        assert not torn, f"left: torn checkpoints {torn}"


def check_shared_memory(run):
    """Hosts with a network of their own have their own /dev/shm too."""
    left = os.listdir(run.lab.shared_memory) if run.lab.real else []
    left = [name for name in left if "faketime_" not in name]  # of the library that changes the clock
    assert not left, f"left: shared memory {left}"


def check(run):
    for part in (check_processes, check_ports, check_files, check_shared_memory):
        part(run)
    descriptors, kib = check_flat(run)
    return f"left: nothing; launchers and daemons grew by {descriptors} descriptors and {kib} KiB at most"
