"""A worker without any library, for comparing launchers: each step is agreed among all ranks over TCP, as a collective
is, and a peer that is gone is an error, as it is there. Rank 0 keeps a checkpoint, and a line for each step.

usage: step_worker.py FOLDER --steps N [--save-s S] [--grandchild] [--fail-at STEP]
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time

PORT = 23456
STEP_S = 0.02
EVERY = 20
MEET_S = 60


class Peers:
    """Rank 0 serves, the others dial it at MASTER_ADDR."""

    def __init__(self, rank, world):
        self.rank, self.ends = rank, []
        deadline = time.monotonic() + MEET_S
        if rank == 0:
            listener = self._try(lambda: socket.create_server(("", PORT)), deadline)
            listener.settimeout(MEET_S)
            self.ends = [listener.accept()[0] for _ in range(world - 1)]
            listener.close()
        else:
            self.ends = [self._try(lambda: socket.create_connection((os.environ["MASTER_ADDR"], PORT), 5), deadline)]
        for end in self.ends:
            end.settimeout(None)

    @staticmethod
    def _try(act, deadline):
        while True:
            try:
                return act()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def agree(self, value):
        """Rank 0's value on every rank, once all are here."""
        if self.rank != 0:
            self.ends[0].sendall(b"x")
            return int(self._read(self.ends[0], 12))
        for end in self.ends:
            self._read(end, 1)
        for end in self.ends:
            end.sendall(b"%012d" % value)
        return value

    @staticmethod
    def _read(end, size):
        data = b""
        while len(data) < size:
            part = end.recv(size - len(data))
            if not part:
                raise ConnectionError("a peer is gone")
            data += part
        return data


def saved_step(folder):
    try:
        with open(f"{folder}/state") as f:
            return int(f.read())
    except FileNotFoundError:
        return 0


def save(folder, step):
    with open(f"{folder}/state.new", "w") as f:
        f.write(str(step))
    os.replace(f"{folder}/state.new", f"{folder}/state")


def save_slowly(options, rank):
    time.sleep(options.save_s)
    with open(f"{options.folder}/saved-{rank}", "w"):
        sys.exit(0)


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--save-s", type=float, default=0)
    parser.add_argument("--grandchild", action="store_true")
    parser.add_argument("--fail-at", type=int, default=-1)
    options = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if options.save_s:
        signal.signal(signal.SIGTERM, lambda *_: save_slowly(options, rank))
    if options.grandchild:
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    peers = Peers(rank, world)
    step = peers.agree(saved_step(options.folder))
    with open(f"{options.folder}/metrics.jsonl", "a", buffering=1) as metrics:
        while step < options.steps:
            time.sleep(STEP_S)
            step = peers.agree(step + 1)
            if step == options.fail_at and rank == world - 1:
                sys.exit(7)
            if rank == 0:
                metrics.write(json.dumps({"step": step, "world": world, "pid": os.getpid()}) + "\n")
                if step % EVERY == 0:
                    save(options.folder, step)
    peers.agree(step)


if __name__ == "__main__":
    main()
