"""Starts the ranks of a benchmark's program without a launcher."""

import os
import socket
import subprocess
import sys

LIMIT_S = 900


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_ranks(command, world):
    """Each rank's standard output. One thread a rank."""
    port = free_port()
    ranks = []
    for rank in range(world):
        env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world),
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1")
        env.pop("TORCHELASTIC_USE_AGENT_STORE", None)
        ranks.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    results = [rank.communicate(timeout=LIMIT_S) for rank in ranks]
    for rank, (_, errors) in zip(ranks, results):
        if rank.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {rank.returncode}\n{errors}")
    return [output for output, _ in results]
