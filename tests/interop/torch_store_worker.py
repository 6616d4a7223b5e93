"""A worker that uses nothing of PyTorch but its store.

usage: torch_store_worker.py leave-early     rank 0 ends first; the others go on asking the store for a while
       torch_store_worker.py own-store PORT  opens a second store at its own port, hosted by rank 0, beside the usual one
       torch_store_worker.py meet            sets its rank and waits for all others
"""

import os
import sys
import time
from datetime import timedelta

import torch.distributed as dist

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PATIENCE = timedelta(seconds=60)


def connect():
    hosting = RANK == 0 and os.environ["TORCHELASTIC_USE_AGENT_STORE"] != "True"
    return dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), WORLD, hosting, PATIENCE)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def leave_early(store):
    store.set(f"here/{RANK}", str(os.getpid()))
    store.wait([f"here/{rank}" for rank in range(WORLD)], PATIENCE)
    first = int(store.get("here/0"))
    store.add("read", 1)
    if RANK == 0:
        while store.add("read", 0) < WORLD:
            time.sleep(0.01)
        return
    asked_after = 0
    while asked_after < 20:
        store.add("asked", 1)
        asked_after += not alive(first)
        time.sleep(0.02)


def own_store(store, port):
    """As init_process_group("tcp://...") opens one."""
    store.add("here", 1)
    where = f"tcp://127.0.0.1:{port}?rank={RANK}&world_size={WORLD}"
    own, rank, world = next(iter(dist.rendezvous(where, timeout=PATIENCE)))
    assert (rank, world) == (RANK, WORLD)
    own.set(f"own/{RANK}", "x")
    own.wait([f"own/{other}" for other in range(WORLD)], PATIENCE)
    own.add("done", 1)
    while RANK == 0 and own.add("done", 0) < WORLD:
        time.sleep(0.01)


def meet(store):
    store.set(f"here/{RANK}", "x")
    store.wait([f"here/{rank}" for rank in range(WORLD)], PATIENCE)


def main():
    store = connect()
    if sys.argv[1] == "leave-early":
        leave_early(store)
    elif sys.argv[1] == "own-store":
        own_store(store, int(sys.argv[2]))
    else:
        meet(store)
    print(f"rank {RANK} is done", flush=True)


main()
