"""What undisturbed runs ended with, kept for later: beside the programs, or, where this user may not write there, in a
folder of the user's own.
"""

import json
import os
import tempfile


def folders(bin_dir):
    """Where they may be, the first choice first."""
    beside = os.path.normpath(f"{bin_dir}/../fault-references")
    own = f"{tempfile.gettempdir()}/muster-fault-references-{os.geteuid()}"
    return [beside, own] if is_ours_to_use(own) else [beside]


def is_ours_to_use(folder):
    """Not one that somebody else has made under our name, where all may make folders."""
    try:
        return os.lstat(folder).st_uid == os.geteuid()
    except FileNotFoundError:
        return True


def find(bin_dir, key):
    """None if it is not known."""
    for folder in folders(bin_dir):
        try:
            with open(f"{folder}/{key}.json", encoding="utf-8") as f:
                return json.load(f)
        except OSError:
            continue
    return None


def keep(bin_dir, key, found):
    """Where nothing can be written it is made again the next time."""
    for folder in folders(bin_dir):
        path = f"{folder}/{key}.json"
        try:
            os.makedirs(folder, mode=0o755, exist_ok=True)
            with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as f:
                json.dump(found, f)
            return os.replace(f"{path}.{os.getpid()}", path)
        except OSError:
            continue
    return None
