"""Shared memory and listening ports of this machine, as the kernel lists them; and what of it nobody alive uses."""

import contextlib
import os

SHARED_MEMORY = "/dev/shm"
LISTENS = "0A"  # state of a socket in /proc/net/tcp


def files():
    """Names of this user's files in the machine's shared memory."""
    found = set()
    if not os.path.isdir(SHARED_MEMORY):
        return found
    with os.scandir(SHARED_MEMORY) as entries:
        for entry in entries:
            try:
                if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                    found.add(entry.name)
            except FileNotFoundError:
                continue
    return found


def segments():
    """{id: pid of who made it} of this user's SysV segments that no process has attached."""
    try:
        with open("/proc/sysvipc/shm", encoding="ascii") as f:
            head, *rows = [line.split() for line in f]
    except FileNotFoundError:  # a kernel without them
        return {}
    table = [dict(zip(head, map(int, row))) for row in rows]
    return {row["shmid"]: row["cpid"] for row in table if row["cuid"] == os.geteuid() and not row["nattch"]}


def used_by(pid):
    """Lines that end in the paths of what this process has mapped or open."""
    used = ""
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
            used = f.read()
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                used += os.readlink(f"/proc/{pid}/fd/{descriptor}") + "\n"
    return used


def held(names):
    """Those of these files that a living process has open or mapped."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc") if names else []):
        used = used_by(pid)
        found.update(name for name in names if f"{SHARED_MEMORY}/{name}\n" in used)
    return found


def left_since(before):
    """Phrases for what is new since `before` (files, segments) and belongs to no living process."""
    names = files() - before[0]
    left = [f"{SHARED_MEMORY}/{name}" for name in sorted(names - held(names)) if "faketime_" not in name]
    return left + segments_left_since(before)


def segments_left_since(before):
    return [f"SysV segment {number} of process {pid}, which has ended" for number, pid in segments().items()
            if number not in before[1] and not os.path.exists(f"/proc/{pid}")]


def is_listened_on(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        with open(table, encoding="ascii") as f:
            for row in map(str.split, list(f)[1:]):
                if row[3] == LISTENS and int(row[1].rsplit(":", 1)[1], 16) == port:
                    return True
    return False
