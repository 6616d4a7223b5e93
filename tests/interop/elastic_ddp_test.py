"""The example worker_sdk/python/elastic_ddp.py: a node joins in mid-run, and the loss curve has no gap.

usage: elastic_ddp_test.py BIN_DIR SOURCE_DIR PYTHON [STEPS]
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

LIMIT_S = 200
COMPARED = 300  # steps after the world has grown


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def losses(folder):
    try:
        with open(f"{folder}/losses.jsonl") as f:
            return [json.loads(line) for line in f.read().split("\n")[:-1]]
    except FileNotFoundError:
        return []


class Launch:
    def __init__(self, name, binary, source, python, folder, steps, arguments):
        self.output = open(f"{folder}/{name}.txt", "w+b")
        environment = {**os.environ, "PYTHONPATH": f"{source}/worker_sdk/python", "GLOO_SOCKET_IFNAME": "lo",
                       "PYTHON_EXEC": python}
        self.process = subprocess.Popen(
            [f"{binary}/muster", "--nproc-per-node=1", f"--log-dir={folder}/logs-{name}", *arguments,
             f"{source}/worker_sdk/python/elastic_ddp.py", f"--folder={folder}/{name.rstrip('b')}", f"--steps={steps}"],
            stdout=self.output, stderr=subprocess.STDOUT, env=environment)

    def finish(self):
        code = self.process.wait(LIMIT_S)
        self.output.seek(0)
        text = self.output.read().decode()
        assert code == 0, f"exit code {code}:\n{text}"


def main():
    binary, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    python = sys.argv[3]
    steps = int(sys.argv[4]) if len(sys.argv) > 4 else 2500
    folder = tempfile.mkdtemp(prefix="muster-elastic-")
    Launch("alone", binary, source, python, folder, steps, ["--standalone"]).finish()
    expected = losses(f"{folder}/alone")

    together = ["--nnodes=1:2", "--rdzv-id=elastic", f"--rdzv-endpoint=127.0.0.1:{free_port()}",
                "--rdzv-conf=last_call_timeout=0"]
    first = Launch("joined", binary, source, python, folder, steps, together)
    deadline = time.monotonic() + LIMIT_S
    while len(losses(f"{folder}/joined")) < 20 and first.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    second = Launch("joinedb", binary, source, python, folder, steps, together)
    first.finish()
    second.finish()
    found = losses(f"{folder}/joined")
    assert [line["step"] for line in found] == list(range(1, steps + 1)), "a step was repeated or left out"
    worlds = [line["world"] for line in found]
    assert worlds[0] == 1 and worlds[-1] == 2, f"the world did not grow: {worlds[0]} to {worlds[-1]}"
    # Later on what sums in another order amount to has grown too large to tell a gap from it.
    for mine, alone in zip(found[:worlds.index(2) + COMPARED], expected):
        assert abs(mine["loss"] - alone["loss"]) < 2e-3 * max(1, alone["loss"]), (mine, alone)
    print(f"{steps} steps, the world grew after step {worlds.index(2)}; final loss {found[-1]['loss']:.4f}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
