"""Whether an interpreter has the PyTorch that a script wants, asked before anything depends on it."""

import os
import re
import shutil
import signal
import subprocess
import tempfile

from interruption import refuse

HERE = os.path.dirname(os.path.abspath(__file__))
IMPORT_LIMIT_S = 60  # a start on a busy machine takes 20
ASK = ("import torch, torch.distributed as d\n"
       "print('PyTorch', torch.__version__, 'with' if d.is_available() and hasattr(d, 'ProcessGroupGloo') else 'without')")


def interpreter(word):
    """Its absolute path."""
    found = shutil.which(word) or refuse(f"--torch: there is no interpreter {word}")
    return os.path.abspath(found)


def answer(python, limit_s):
    """(exit code, output) of the question, asked where scripts run; None as the code if it does not end in time."""
    with tempfile.TemporaryFile() as output:  # no pipe: what it starts may hold that
        try:
            process = subprocess.Popen([python, "-c", ASK], cwd=HERE, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            return 1, error.strerror
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return code, output.read().decode(errors="replace")


def torch_version(python, limit_s=IMPORT_LIMIT_S):
    """As in 1.13.1; what is wrong with this interpreter is said in one sentence."""
    code, said = answer(python, limit_s)
    if code is None:
        refuse(f"--torch {python}: it has not imported torch within {limit_s:g} s")
    found = re.search(r"^PyTorch (\S+) (with|without)$", said, re.MULTILINE)
    if code != 0 or not found:
        last = (said.strip().splitlines() or ["it says nothing"])[-1]
        refuse(f"--torch {python}: it cannot import torch (exit code {code}): {last}")
    if found[2] == "without":
        refuse(f"--torch {python}: its PyTorch {found[1]} has no Gloo, which the script needs")
    return found[1]
