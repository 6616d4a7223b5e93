"""Proof 5, nothing left: no process, listening port, temporary file or shared memory of the job; descriptors and memory
of launchers and daemons flat over the rounds.
"""

import contextlib
import os
import re
import sys
import threading
import time

import machine_memory

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from run_processes import told  # noqa: E402

GENERATION = re.compile(r"-generation-(\d+)-round-")
LEAVE_S = 20  # a hosted daemon leaves some seconds after its last job
MAX_MORE_DESCRIPTORS = 16
MAX_MORE_KIB = 8 << 10
MIN_SAMPLES = 16
SAMPLE_EVERY_S = 0.5
SETTLED = 2  # samples after which a round's connections are there


def use_of(pid):
    """(children it waits for, descriptors, KiB); nothing while it is stopped, or a zombie."""
    with open(f"/proc/{pid}/stat") as f:
        if f.read().rsplit(")", 1)[1].split()[0] in "TtZ":
            return None
    kinds = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            kinds.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    with open(f"/proc/{pid}/statm") as f:
        kib = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 10
    return kinds.count("anon_inode:[pidfd]"), len(kinds), kib


class UseSampler:
    """What each launcher and daemon uses, twice a second, apart for each number of children: with workers a launcher has
    more than without. {(pid, children): [(descriptors, KiB)]}.
    """

    def __init__(self, pids):
        self._pids, self.samples = pids, {}
        self._since = {}  # pid: (children, how often in a row)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        self._stopped.set()
        self._thread.join()

    def _run(self):
        while not self._stopped.wait(SAMPLE_EVERY_S):
            for pid in self._pids():
                with contextlib.suppress(OSError):
                    self.add(pid, use_of(pid))

    def add(self, pid, use):
        if use is None:
            return
        children, descriptors, kib = use
        before, times = self._since.get(pid, (children, 0))
        times = times + 1 if children == before else 1
        self._since[pid] = children, times
        if times > SETTLED:
            self.samples.setdefault((pid, children), []).append((descriptors, kib))


def growth(samples):
    """Between the second quarter and the last one, from trough to trough: rounds come and go in between."""
    quarter = len(samples) // 4
    early, late = samples[quarter:2 * quarter], samples[-quarter:]
    return tuple(min(s[i] for s in late) - min(s[i] for s in early) for i in (0, 1))


def check_flat(run):
    """(descriptors, KiB) that one has grown by at most; None if no process was there for long enough to tell."""
    worst = None
    for (pid, _), samples in run.use.samples.items():
        if len(samples) < MIN_SAMPLES:
            continue
        descriptors, kib = growth(samples)
        assert descriptors <= MAX_MORE_DESCRIPTORS, f"left: pid {pid} has {descriptors} more descriptors than before"
        assert kib <= MAX_MORE_KIB, f"left: pid {pid} uses {kib} KiB more than before"
        worst = (max(worst[0], descriptors), max(worst[1], kib)) if worst else (descriptors, kib)
    return worst


def told_of_growth(worst):
    if worst is None:
        return "whether launchers and daemons grow was not measured: the job was too short"
    return f"launchers and daemons grew by {worst[0]} descriptors and {worst[1]} KiB at most"


def check_processes(run):
    deadline = time.monotonic() + LEAVE_S
    while found := run.processes():
        if time.monotonic() > deadline:
            raise AssertionError(f"left: processes {told(found)}")
        time.sleep(0.05)


def found_on(lab):
    """What check_shared_memory compares with: (files, SysV segments) that are there before anything is started."""
    return (set() if lab.real else machine_memory.files()), machine_memory.segments()


def check_ports(run):
    """Hosts that share this machine's network share it with others: of its ports only the daemon's is the run's own."""
    if not run.lab.real:
        assert not machine_memory.is_listened_on(run.lab.port), f"left: something listens on port {run.lab.port}"
        return
    for name, host in run.hosts.items():
        listening = host.run("ss", "-Htln").strip()
        assert not listening, f"left: on {name} something listens: {listening}"


def check_files(run):
    left = os.listdir(run.temporary)
    assert not left, f"left: temporary files {left}"
    if run.succeeded() and os.path.isdir(f"{run.folder}/checkpoint"):
        entries = os.listdir(f"{run.folder}/checkpoint")
        saved = max((int(match[1]) for match in map(GENERATION.search, entries) if match), default=0)
        torn = [entry for entry in entries if entry.startswith(".tmp-") and not begun_after(entry, saved)]
        assert not torn, f"left: torn checkpoints {torn}"


def begun_after(entry, generation):
    """The note of a run that has not saved: the next one is numbered on from it."""
    match = re.fullmatch(r"\.tmp-begun-run-(\d+)", entry)
    return match is not None and int(match[1]) > generation


def check_shared_memory(run):
    """Hosts with a network of their own have their own /dev/shm too, but SysV segments are the machine's. There, what
    was not there before and belongs to no living process counts as the job's.
    """
    if run.lab.real:
        left = [name for name in os.listdir(run.lab.shared_memory) if "faketime_" not in name]  # of the clock's library
        left += machine_memory.segments_left_since(run.before)
    else:
        left = machine_memory.left_since(run.before)
    assert not left, f"left: shared memory {left}"


def check(run):
    for part in (check_processes, check_ports, check_files, check_shared_memory):
        part(run)
    looked = "" if run.lab.real else f" (on this machine's own network; of its ports only {run.lab.port} was looked at)"
    return f"left: nothing{looked}; {told_of_growth(check_flat(run))}"
