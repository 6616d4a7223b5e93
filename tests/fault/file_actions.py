"""The sentences that hurt disks and files: full, read-only, cut short, altered."""

import errno
import os
import subprocess

from sentences import sentence
from stored_checkpoints import newest_first

FILLER = "filler"
CHUNK = 1 << 16


def own_disk(run, folder):
    assert folder in run.scenario.disks, f"{folder} has no disk of its own: say 'disk: {folder} SIZE' in the head"
    return f"{run.folder}/{folder}"


@sentence("fill the disk of FOLDER")
def fill(run, folder):
    with open(f"{own_disk(run, folder)}/{FILLER}", "ab", buffering=0) as f:
        size = CHUNK
        while size > 0:
            try:
                f.write(bytes(size))
            except OSError:
                size //= 2


@sentence("empty the disk of FOLDER")
def empty(run, folder):
    """Of what filled it."""
    os.unlink(f"{own_disk(run, folder)}/{FILLER}")


def remount(run, folder, how):
    """Refused while a file there is open for writing: hence tried until it is done."""
    words = ["mount", "-o", f"remount,{how}", own_disk(run, folder)]
    run.await_that(lambda: subprocess.run(words, capture_output=True, check=False).returncode == 0,
                   f"{folder} can be remounted {how}")


@sentence("make the disk of FOLDER read-only")
def make_read_only(run, folder):
    remount(run, folder, "ro")


@sentence("break the disk of FOLDER")
def break_disk(run, folder):
    """As after an error of the file system: read-only, also for files that are open, and for good."""
    subprocess.run(["mount", "-o", "remount,abort", own_disk(run, folder)], capture_output=True, check=False)
    try:
        with open(f"{own_disk(run, folder)}/{FILLER}", "w"):
            raise AssertionError(f"the disk of {folder} is not broken: it can be written to")
    except OSError as error:
        assert error.errno == errno.EROFS, f"the disk of {folder} is broken in another way: {error}"


@sentence("make the disk of FOLDER writable")
def make_writable(run, folder):
    remount(run, folder, "rw")


def newest_checkpoint_file(run):
    """The largest file of the newest checkpoint."""
    found = newest_first(run)
    assert found, "there is no checkpoint"
    path = found[0][1]
    if not os.path.isdir(path):
        return path
    files = [os.path.join(path, entry) for entry in os.listdir(path)]
    return max(files, key=os.path.getsize)


def journal(run):
    return f"{run.folder}/state/journal"


def truncate(path):
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) // 2)


def flip(run, path):
    with open(path, "r+b") as f:
        place = run.dice.randrange(os.path.getsize(path))
        f.seek(place)
        byte = f.read(1)[0]
        f.seek(place)
        f.write(bytes([byte ^ (1 << run.dice.randrange(8))]))
    run.note(f"byte {place} of {path}")


@sentence("truncate the newest checkpoint")
def truncate_checkpoint(run):
    run.damaged_checkpoints += 1
    truncate(newest_checkpoint_file(run))


@sentence("flip a bit of the newest checkpoint")
def flip_checkpoint(run):
    run.damaged_checkpoints += 1
    flip(run, newest_checkpoint_file(run))


@sentence("truncate the journal")
def truncate_journal(run):
    truncate(journal(run))


@sentence("flip a bit of the journal")
def flip_journal(run):
    flip(run, journal(run))
