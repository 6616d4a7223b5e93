"""The folder with the programs under test, and how scripts/chaos is called again."""

import os
import shlex

from interruption import refuse

REPOSITORY = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
NEEDED = ("muster", "musterd", "musterctl")


def checked(bin_dir):
    """Absolute; what is not there is said in one sentence."""
    missing = [name for name in NEEDED if not os.access(os.path.join(bin_dir, name), os.X_OK)]
    if missing:
        refuse(f"{bin_dir} is no folder with muster's programs: there is no {' and no '.join(missing)}")
    return os.path.abspath(bin_dir)


def command_again(*words):
    """As it can be typed in the folder where this was called."""
    return shlex.join([os.path.relpath(f"{REPOSITORY}/scripts/chaos"), *words])
