"""What a test run has made on this machine, written down before it is made: namespaces, links, mounts, folders.

A run keeps its file locked for as long as it lives, so a later one can tell what a run that was killed has left, and
removes that; it never touches what a living run uses. One line for each thing: its kind, a tab, its name.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time

MARK = "MUSTER_LAB_RUN"  # variable of every process of a run
LIMIT_S = 10


def registry_folder():
    """Root's own, or this user's."""
    return "/run/muster-labs" if os.geteuid() == 0 else f"/tmp/muster-labs-{os.geteuid()}"


def environment_of_process(pid):
    with open(f"/proc/{pid}/environ", "rb") as f:
        return f.read().split(b"\0")


def marked_processes(mark):
    """pids of the processes of the run with this mark; zombies have no environment and are left out."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if wanted in environment_of_process(entry):
                found.append(int(entry))
        except OSError:
            continue
    return found


def kill_marked(mark):
    """Until none is left: what is killed may have been about to fork."""
    deadline = time.monotonic() + LIMIT_S
    while found := marked_processes(mark):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise AssertionError(f"processes {found} of {mark} cannot be killed within {LIMIT_S} s")
        time.sleep(0.01)


def quietly(*words):
    subprocess.run(words, capture_output=True, check=False)


def remove_cgroup(folder):
    with contextlib.suppress(OSError):
        os.rmdir(folder)


REMOVERS = {  # in this order; what is not there any more is no fault
    "processes": kill_marked,
    "mount": lambda path: quietly("umount", "-l", path),
    "namespace": lambda name: quietly("ip", "netns", "del", name),
    "link": lambda name: quietly("ip", "link", "del", name),
    "cgroup": remove_cgroup,
    "folder": lambda path: shutil.rmtree(path, ignore_errors=True),
}


def remove_all(things):
    for kind, remove in REMOVERS.items():
        for name in reversed([name for known, name in things if known == kind]):
            remove(name)


def read_things(path):
    """Whole lines only: a run that dies while it writes has not made that thing yet."""
    with open(path) as f:
        lines = f.read().split("\n")[:-1]
    return [tuple(line.split("\t", 1)) for line in lines if "\t" in line]


class RunRegistry:
    """This run's file. Use it as a context manager; whatever happens, what it knows is removed at the end."""

    def __init__(self, folder=None):
        self._folder = folder or registry_folder()
        os.makedirs(self._folder, exist_ok=True)
        self.removed = sweep(self._folder)
        serial = 0
        while os.path.exists(path := f"{self._folder}/{os.getpid()}-{serial}.txt"):
            serial += 1
        self._path = path
        self._file = open(f"{path}.new", "w", encoding="utf-8")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        os.rename(f"{path}.new", path)  # locked before anybody can see it

    def note(self, kind, name):
        assert kind in REMOVERS, kind
        self._file.write(f"{kind}\t{name}\n")
        self._file.flush()
        return name

    def keep(self, folder):
        """This folder outlives the run, for whoever looks at what failed."""
        things = [thing for thing in read_things(self._path) if thing != ("folder", folder)]
        self._file.seek(0)
        self._file.truncate()
        self._file.writelines(f"{kind}\t{name}\n" for kind, name in things)
        self._file.flush()

    def close(self):
        if not self._file.closed:
            remove_all(read_things(self._path))
            os.unlink(self._path)
            self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.close()


def sweep(folder=None):
    """Removes what dead runs have left; the names of their files."""
    folder, removed = folder or registry_folder(), []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        try:
            with open(path, encoding="utf-8") as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.exists(path) or os.fstat(f.fileno()).st_ino != os.stat(path).st_ino:
                    continue  # another run was faster
                remove_all(read_things(path))
                os.unlink(path)
                removed.append(name)
        except (BlockingIOError, FileNotFoundError):
            continue
    return removed
