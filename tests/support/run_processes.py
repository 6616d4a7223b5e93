"""Which processes are a run's, whatever they have made of their environment.

Those with its mark there; those in the network of one of its hosts, where hosts have networks of their own; those whose
output goes to a file in its folder; and for the run itself, while it lives, what descends from it in another session,
which is what it starts as a part of itself: whom the parent leaves becomes its child. Somebody who looks on, from that
folder as well, is not of the run.
"""

import contextlib
import ctypes
import os
import signal
import time
from typing import NamedTuple

MARK = "MUSTER_LAB_RUN"  # variable of every process of a run
LIMIT_S = 10
PR_SET_CHILD_SUBREAPER = 36
_before = {}  # mark of a run of this very process: what descended from it before that


class Status(NamedTuple):
    state: str
    parent: int
    session: int


def statuses():
    """{pid: Status} of all processes of this machine."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
            state, parent, _, session = f.read().rsplit(")", 1)[1].split()[:4]
            found[int(entry)] = Status(state, int(parent), int(session))
    return found


def living():
    """The same without zombies, and without this process."""
    return {pid: one for pid, one in statuses().items() if one.state not in "ZX" and pid != os.getpid()}


def environment_of_process(pid):
    with open(f"/proc/{pid}/environ", "rb") as f:
        return f.read().split(b"\0")


def is_marked(pid, mark):
    with contextlib.suppress(OSError):
        return f"{MARK}={mark}".encode() in environment_of_process(pid)
    return False


def has_output_in(pid, folder):
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{descriptor}").startswith(f"{folder}/"):
                return True
    return False


def descendants(table, apart=()):
    """Of this process, in another session; without those that are set apart, and what descends from them."""
    found, newest = set(), {os.getpid()}
    while newest:
        newest = {pid for pid, one in table.items() if one.parent in newest and pid not in apart} - found
        found |= newest
    return {pid for pid in found if table[pid].session != os.getsid(0)}


def adopt(mark):
    """From now on what descends from this process is of the run with this mark, even once its parent has ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _before[mark] = descendants(living())


def processes_of(mark):
    """pids of the run with this mark, which is the path of its folder."""
    table, folder = living(), os.path.realpath(mark)
    own = descendants(table, _before[mark]) if mark in _before else set()
    return [pid for pid in table if pid in own or is_marked(pid, mark) or has_output_in(pid, folder)]


def network_of(path):
    with contextlib.suppress(OSError):
        status = os.stat(path)
        return status.st_dev, status.st_ino
    return None


def processes_in(*namespaces):
    """pids in these networks; never in this process's own, which is no host's."""
    networks = {network_of(f"/run/netns/{name}") for name in namespaces} - {None, network_of("/proc/self/ns/net")}
    if not networks:
        return []
    pids = map(int, filter(str.isdigit, os.listdir("/proc")))
    return [pid for pid in pids if network_of(f"/proc/{pid}/ns/net") in networks]


def send(pid, number):
    """False if it is there no more."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def kill_all(find):
    """Until none is left: what is killed may have been about to fork."""
    deadline = time.monotonic() + LIMIT_S
    while found := find():
        for pid in found:
            send(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise OSError(f"{found} cannot be killed within {LIMIT_S} s")
        time.sleep(0.01)


def reap_adopted(started):
    """Takes note of the end of adopted children; what this process has `started` is left to who did so."""
    for pid, one in statuses().items():
        if (one.state, one.parent) == ("Z", os.getpid()) and one.session != os.getsid(0) and pid not in started:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def told(pids):
    """{pid: command} of those that are still there."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
            found[pid] = f.read().replace("\0", " ").strip()
    return found
