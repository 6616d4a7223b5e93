"""What has to be there before anything is tried: a Python, programs, a folder; and how scripts/chaos is called again."""

import os
import shlex
import sys
import tempfile

import machine_memory
from interruption import refuse

REPOSITORY = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, f"{REPOSITORY}/tests/support")
import run_registry  # noqa: E402
from registry_checks import RegistryRefused, make_registry  # noqa: E402

NEEDED = ("muster", "musterd", "musterctl")
NOT_IN_A_NAME = {"$": "which launchers take for that of a variable", "{": "which launchers take for that of a field",
                 ",": "where launchers take it for the end of a setting of the rendezvous"}


def checked(bin_dir):
    """Absolute; what is not there is said in one sentence."""
    missing = [name for name in NEEDED if not os.access(os.path.join(bin_dir, name), os.X_OK)]
    if missing:
        refuse(f"{bin_dir} is no folder with muster's programs: there is no {' and no '.join(missing)}")
    return os.path.abspath(bin_dir)


def check_interpreter():
    """Proofs and expectations are assert statements."""
    if sys.flags.optimize:
        refuse("this Python leaves out what is to be proved (PYTHONOPTIMIZE, -O); unset PYTHONOPTIMIZE, and leave out -O")


def why_no_run_works_in(folder):
    """Nothing if it does."""
    for letter, why in NOT_IN_A_NAME.items():
        if letter in folder:
            return f"it has a {letter} in its name, {why}"
    shared = os.path.realpath(machine_memory.SHARED_MEMORY)
    if os.path.commonpath([os.path.realpath(folder), shared]) == shared:
        return f"it is in {shared}, of which each host has one of its own"
    return None


def check_temporary_folder():
    """Before anything is made there."""
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:
        refuse(f"{error.strerror}; set TMPDIR")
    if why := run_registry.why_not_noted(folder) or why_no_run_works_in(folder):
        refuse(f"the temporary folder {ascii(folder)} cannot be used: {why}; set TMPDIR to another one")


def check_registry():
    """Before it is believed: what it names is removed."""
    try:
        make_registry(run_registry.registry_folder())
    except RegistryRefused as why:
        refuse(str(why))


def command_again(*words):
    """As it can be typed in the folder where this was called."""
    return shlex.join([os.path.relpath(f"{REPOSITORY}/scripts/chaos"), *words])
