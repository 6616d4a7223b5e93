"""What a test run has made on this machine, written down before it is made: namespaces, links, mounts, folders.

A run keeps its file locked for as long as it lives, so a later one can tell what a run that was killed has left, and
removes that; it never touches what a living run uses. One line for each thing: its kind, a tab, its name. What cannot
be removed is said in a line, stays written down for the next run to try, and keeps nothing else from being removed.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import secrets
import socket
import stat
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from registry_checks import check_registry, is_plausible, make_registry
from run_processes import LIMIT_S, adopt, kill_all, processes_in, processes_of


def registry_folder():
    """Root's own, or this user's."""
    return "/run/muster-labs" if os.geteuid() == 0 else f"/tmp/muster-labs-{os.geteuid()}"


def why_not_noted(name):
    """A thing is written down in a line of text; nothing if this name can be."""
    if any(ord(letter) < 32 for letter in name):
        return "it has a line break, or another control character, in its name"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    return None


def thaw(cgroup):
    """Wakes up what the freezer of cgroups v1 holds there: no signal reaches it before."""
    with contextlib.suppress(FileNotFoundError), open(f"{cgroup}/freezer.state", "r+", encoding="ascii") as f:
        f.write("THAWED")


def quietly(*words):
    """Whether it did what it should is seen by what is there afterwards."""
    with contextlib.suppress(FileNotFoundError):
        subprocess.run(words, capture_output=True, check=False)


def remove_cgroup(folder):
    """It is busy until the kernel has ended the last process there."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            return os.rmdir(folder)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def no_plain_file(folder, names):
    """Sockets and the like, which cannot be copied."""
    plain = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
    return [name for name in names if stat.S_IFMT(os.lstat(os.path.join(folder, name)).st_mode) not in plain]


def kill_processes(mark):
    kill_all(lambda: processes_of(mark))


def remove_namespace(name):
    """With whoever is in it: once its name is gone nobody finds them."""
    kill_all(lambda: processes_in(name))
    quietly("ip", "netns", "del", name)


def unmount(path):
    quietly("umount", "-l", path)


def unmount_and_keep(path):
    """What is on the disk that was mounted there lies in the folder afterwards."""
    copy = f"{path}.kept"
    shutil.copytree(path, copy, symlinks=True, ignore=no_plain_file, dirs_exist_ok=True)
    unmount(path)
    if not os.path.ismount(path):
        os.rmdir(path)
        os.rename(copy, path)


def is_link(name):
    try:
        return socket.if_nametoindex(name) > 0
    except OSError:
        return False


REMOVERS = {  # in this order; what is not there any more is no fault
    "processes": kill_processes,
    "mount": unmount,
    "namespace": remove_namespace,
    "link": lambda name: quietly("ip", "link", "del", name),
    "cgroup": remove_cgroup,
    "folder": lambda path: shutil.rmtree(path, ignore_errors=True),
}
IS_THERE = {
    "processes": processes_of,
    "mount": os.path.ismount,
    "namespace": lambda name: os.path.exists(f"/run/netns/{name}"),
    "link": is_link,
    "cgroup": os.path.isdir,
    "folder": os.path.lexists,
}


def named(things, kind):
    """The newest first."""
    return [name for known, name in reversed(things) if known == kind]


def is_there(kind, name):
    return kind in IS_THERE and bool(IS_THERE[kind](name))


def remove(kind, name, kept):
    """Nothing if it is gone; otherwise why it stays."""
    try:
        if not is_there(kind, name):
            return None
        if not is_plausible(kind, name):
            return "no run gives such a name, so it is left to you"
        if kind == "mount" and any(name.startswith(f"{folder}/") for folder in kept):
            unmount_and_keep(name)
        else:
            REMOVERS[kind](name)
        return "it is still there" if is_there(kind, name) else None
    except (OSError, subprocess.SubprocessError) as error:
        return str(error).splitlines()[0]


def remove_all(things):
    """[(kind, name, why)] of what stays."""
    kept = named(things, "keep")
    for cgroup in named(things, "cgroup"):
        with contextlib.suppress(OSError):  # then what is frozen there is said to stay
            if is_plausible("cgroup", cgroup):
                thaw(cgroup)
    stays = []
    for kind in REMOVERS:
        for name in named(things, kind):
            if (kind == "folder" and name in kept) or not (why := remove(kind, name, kept)):
                continue
            stays.append((kind, name, why))
    return stays


def read_things(path):
    """Whole lines only: a run that dies while it writes has not made that thing yet."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")[:-1]
    return [tuple(line.split("\t", 1)) for line in lines if "\t" in line]


def finish(file, path):
    """Removes what this locked file names, and the file; [(kind, name, why)] of what stays, and the file with it."""
    things = read_things(path)
    stays = remove_all(things)
    if not stays:
        os.unlink(path)
        return stays
    left = [("keep", name) for name in named(things, "keep")] + [(kind, name) for kind, name, _ in reversed(stays)]
    file.seek(0)
    file.truncate()
    file.writelines(f"{kind}\t{name}\n" for kind, name in left)
    file.flush()
    told = "; ".join(f"{kind} {name}: {why}" for kind, name, why in stays)
    print(f"{path}: not removed, the next run tries again: {told}", file=sys.stderr, flush=True)
    return stays


@contextlib.contextmanager
def alone_in(folder):
    """Files are made, and taken over, by one run at a time: so nobody finds one that is not locked yet."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class RunRegistry:
    """This run's file. Use it as a context manager; whatever happens, what it knows is removed at the end.

    RegistryRefused if the registry cannot be made, or may be somebody else's.
    """

    def __init__(self, folder=None):
        self._folder = folder or registry_folder()
        make_registry(self._folder)
        self.removed = sweep(self._folder)
        with alone_in(self._folder):
            serial = 0
            while os.path.exists(path := f"{self._folder}/{os.getpid()}-{serial}.txt"):
                serial += 1
            self._path = path
            self._file = open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600))
            fcntl.flock(self._file, fcntl.LOCK_EX)

    def note(self, kind, name):
        """ValueError, before anything is made, for a name that cannot be written down."""
        assert kind in REMOVERS, kind
        if why := why_not_noted(name):
            raise ValueError(f"{kind} {name!r}: {why}")
        assert is_plausible(kind, name), f"nobody would remove the {kind} {name!r}"
        self._write(kind, name)
        if kind == "processes":
            adopt(name)
        return name

    def make_folder(self, prefix):
        """In the temporary folder, for this user alone; its path."""
        folder = os.path.abspath(tempfile.gettempdir())  # it is "." where TMPDIR is
        path = self.note("folder", os.path.join(folder, prefix + secrets.token_hex(8)))
        os.mkdir(path, 0o700)
        return path

    def keep(self, folder):
        """This folder outlives the run, for whoever looks at what failed; with what was on disks mounted in it."""
        self._write("keep", folder)

    def _write(self, kind, name):
        self._file.write(f"{kind}\t{name}\n")
        self._file.flush()

    def close(self):
        if not self._file.closed:
            finish(self._file, self._path)
            self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.close()


def take_over(folder, path):
    """The file of a dead run, open and locked; None while its run lives, or once another one has swept it."""
    with alone_in(folder):
        try:
            file = open(path, "r+", encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(path) and os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        except (BlockingIOError, FileNotFoundError):
            pass
        file.close()
        return None


class Swept(NamedTuple):
    """A dead run's file, and phrases for what it named and was still there."""

    file: str
    removed: list
    stays: list


def sweep(folder=None):
    """Removes what dead runs have left, and says what that was. RegistryRefused as of check_registry."""
    folder, swept = folder or registry_folder(), []
    check_registry(folder)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        try:
            file = take_over(folder, path)
            if file is None:
                continue
            with file:
                things = read_things(path)
                kept = named(things, "keep")
                found = [f"{kind} {thing}" for kind, thing in things
                         if is_there(kind, thing) and not (kind == "folder" and thing in kept)]
                stays = [f"{kind} {thing}" for kind, thing, _ in finish(file, path)]
            swept.append(Swept(name, [phrase for phrase in found if phrase not in stays], stays))
        except (OSError, ValueError) as error:  # ValueError: it is no text
            print(f"{path}: not swept: {error}", file=sys.stderr, flush=True)
            swept.append(Swept(name, [], [f"the file {path}"]))
    return swept
