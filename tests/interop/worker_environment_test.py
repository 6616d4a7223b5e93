"""The environments of workers under PyTorch's torchrun and under muster, variable by variable.

usage: worker_environment_test.py MUSTER PYTHON    PYTHON has PyTorch

The same command is run by both, with two workers. Each variable that is not the same for a rank has to be in the table
below with its reason, and each row of the table has to be seen: docs/torchrun.md says the same to users.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile

LIMIT_S = 120
OLD = "1.13 only"  # rows that today's torchrun does not have

# Variable: (when it differs, why). Where torchrun's value is not wanted, a function says what muster's has to be.
DIFFERENCES = {
    "MASTER_ADDR": ("", "an address that every node can reach; torchrun gives this host's name"),
    "MASTER_PORT": ("", "a free port, another one in each run"),
    "OMP_NUM_THREADS": ("", "usable CPUs / workers; torchrun gives 1, whatever the machine has"),
    "TORCHELASTIC_ERROR_FILE": ("", "in the log folder, which is laid out in another way"),
    "TORCHELASTIC_USE_AGENT_STORE": (OLD, "True, as today's torchrun; 1.13 lets worker 0 serve the store"),
    "NCCL_ASYNC_ERROR_HANDLING": (OLD, "torchrun's only: the name before PyTorch 2.2"),
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": (OLD, "the name since PyTorch 2.2, which 1.13 does not set"),
    "TORCHELASTIC_SIGNALS_TO_HANDLE": ("new only", "torchrun's only: it sets it for itself"),
    "PYTHONUNBUFFERED": ("", "muster's only: the last lines of a worker that is killed are there"),
    "MUSTER_AGENT": ("", "muster's only: the mark by which leftovers are found"),
    "MUSTER_CHANNEL": ("", "muster's only: the worker's way to the agent"),
    "MUSTER_NODE": ("", "muster's only"),
    "MUSTER_ROUND": ("", "muster's only"),
}

DUMP = """import json, os, sys
with open(os.path.join(sys.argv[1], os.environ["RANK"] + ".json"), "w") as f:
    json.dump(dict(os.environ), f)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def launched(command, folder, environment):
    os.makedirs(folder)
    done = subprocess.run([*command, folder], env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    found = []
    for rank in (0, 1):
        with open(os.path.join(folder, f"{rank}.json"), encoding="utf-8") as f:
            found.append(json.load(f))
    return found


def differing(theirs, ours):
    return {name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name)}


def main():
    muster, python = sys.argv[1:3]
    version = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True,
                             timeout=LIMIT_S, check=True).stdout
    old = version.startswith("1.")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "MUSTER_", "TORCH", "OMP_", "NCCL_"))}
    environment.pop("PYTHONUNBUFFERED", None)
    environment.update({"PYTHON_EXEC": python, "A_VARIABLE_OF_THE_USERS": "stays"})
    # Not --standalone: 1.13 takes port 29400 for it, whoever has that. And 1.13.1 on Python 3.11 dies with other values
    # of the last two (section 16 of the specification).
    options = ["--rdzv_backend=c10d", f"--rdzv_endpoint=localhost:{free_port()}", "--rdzv_id=environment",
               "--nproc_per_node=2", "--max_restarts=2", "--role=trainer", "-r", "1", "-t", "1"]
    with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
        script = os.path.join(folder, "dump.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(DUMP)
        theirs = launched([python, "-m", "torch.distributed.run", *options, script], folder + "/torchrun", environment)
        ours = launched([muster, *options, script], folder + "/muster", environment)

    seen = set()
    for rank in (0, 1):
        for name in differing(theirs[rank], ours[rank]):
            assert name in DIFFERENCES, (f"rank {rank}: {name} is {ours[rank].get(name)!r} under muster and "
                                         f"{theirs[rank].get(name)!r} under torchrun {version.strip()}, without a reason")
            seen.add(name)
    expected = {name for name, (when, _) in DIFFERENCES.items() if when == "" or (when == OLD) == old}
    cpus = len(os.sched_getaffinity(0)) // 2
    if cpus <= 1:
        expected.discard("OMP_NUM_THREADS")  # one thread a worker is right here
    assert expected <= seen, f"no differences any more, though the table has them: {expected - seen}"
    print(f"{len(ours[0])} variables a worker, {len(seen)} of them not as under torchrun {version.strip()}:")
    for name in sorted(seen):
        print(f"  {name}: {DIFFERENCES[name][1]}")


if __name__ == "__main__":
    main()
