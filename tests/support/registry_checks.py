"""What a registry of runs must be before anything that it says is acted on: this user's alone, and plausible.

Its name can be guessed, and where all may make folders somebody else may have been first.
"""

import os
import re
import stat

WRITE_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
LAB_FOLDER = r"//?(?:[^/\0]+/)*muster-lab-[0-9a-z_]+"  # in whatever the temporary folder was
NAMESPACE = r"mns\d+[a-z]-\d+"
PATTERNS = {  # of the names that runs give to what they make
    "processes": LAB_FOLDER,
    "mount": LAB_FOLDER + r"(?:/[^/\0]+)*",
    "namespace": NAMESPACE,
    "link": r"mbr\d+[a-z]",
    "cgroup": r"/sys/fs/cgroup/(?:[^/\0]*/)*muster-lab-\d+-[0-9a-z-]+",
    "folder": f"{LAB_FOLDER}|/etc/netns/{NAMESPACE}",
}
WHAT_TO_DO = "all that it names would be removed: see who made it, and delete it"


class RegistryRefused(Exception):
    """One sentence: what is wrong, where, and what to do."""


def is_plausible(kind, name):
    return re.fullmatch(PATTERNS[kind], name) is not None and not {".", ".."} & set(name.split("/"))


def why_not_ours(path, is_kind, kind):
    """Nothing if it is this user's own, no link, and nobody else may write to it."""
    status = os.lstat(path)
    if not is_kind(status.st_mode):
        return f"it is {'a link' if stat.S_ISLNK(status.st_mode) else f'no {kind}'}"
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, not to {os.geteuid()}"
    if status.st_mode & WRITE_OF_OTHERS:
        return f"others may write to it (its mode is {stat.S_IMODE(status.st_mode):o})"
    return None


def check_registry(folder):
    """RegistryRefused for one that somebody else may have written. There may be none."""
    try:
        why = why_not_ours(folder, stat.S_ISDIR, "folder")
    except FileNotFoundError:
        return
    except OSError as error:
        why = error.strerror
    if why:
        raise RegistryRefused(f"the registry of runs {folder} is not used: {why}; {WHAT_TO_DO}")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise RegistryRefused(f"the registry of runs {folder} cannot be read and written; let this user do so")
    for name in os.listdir(folder):
        check_file(os.path.join(folder, name))


def check_file(path):
    try:
        why = why_not_ours(path, stat.S_ISREG, "file")
    except FileNotFoundError:  # its run has ended
        return
    if why:
        raise RegistryRefused(f"{path}, in the registry of runs, is not used: {why}; {WHAT_TO_DO}")


def make_registry(folder):
    """For this user alone; RegistryRefused where it cannot be made, or as of check_registry."""
    try:
        os.makedirs(folder, mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise RegistryRefused(f"the registry of runs {folder}, where they write down what they make, cannot be made: "
                              f"{error.strerror}; let this user write in {os.path.dirname(folder)}") from None
    check_registry(folder)
