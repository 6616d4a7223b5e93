"""Runs the real muster in a temporary folder, in an environment in which nothing of muster, torchrun or Slurm is set."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from job_settings import is_setting  # noqa: E402

LIMIT_S = 120
TOUCH = "import os, sys\nopen(os.path.join(sys.argv[1], os.environ['RANK']), 'w').close()\n"
DUMP = """import json, os, sys
with open(os.path.join(sys.argv[1], os.environ["RANK"] + ".json"), "w") as f:
    json.dump({"env": dict(os.environ), "argv": sys.argv[1:]}, f)
"""


class Place:
    """A temporary folder, and muster run in it with an environment in which nothing of ours is set."""

    def __init__(self, bin_dir, build_dir):
        self.muster = os.path.abspath(os.path.join(bin_dir, "muster"))
        self.build = os.path.abspath(build_dir)
        self.folder = tempfile.mkdtemp(prefix="muster-test-")
        self.out = self.path("out")
        os.mkdir(self.out)
        self.temporary = self.path("tmp")
        os.mkdir(self.temporary)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def environment(self, variables=None):
        kept = {k: v for k, v in os.environ.items() if not (is_setting(k) or k.startswith("MUSTER_"))}
        kept.pop("PYTHONUNBUFFERED", None)
        kept["TMPDIR"] = self.temporary
        kept.update(variables or {})
        return kept

    def start(self, words, variables=None, program=None):
        return subprocess.Popen([program or self.muster, *words], env=self.environment(variables), cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, words, variables=None, code=0, program=None):
        child = self.start(words, variables, program)
        try:
            out, err = child.communicate(timeout=LIMIT_S)
        finally:
            child.kill()
        assert child.returncode == code, f"{words}: exit {child.returncode}, not {code}\n{out}\n{err}"
        return out, err

    def refused(self, words, variables=None):
        """The one line that says why."""
        out, err = self.run(words, variables, code=2)
        assert out == "" and err.count("\n") == 1 and err.startswith("muster: "), (out, err)
        return err

    def ranks(self):
        return sorted(int(name) for name in os.listdir(self.out))

    def expect_ranks(self, count):
        assert self.ranks() == list(range(count)), self.ranks()

    def dumped(self, rank=0):
        with open(os.path.join(self.out, f"{rank}.json"), encoding="utf-8") as f:
            return json.load(f)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
