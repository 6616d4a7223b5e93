"""How long torchrun's own dynamic rendezvous takes for N agents on this machine.

usage: python3 torch_rendezvous.py N LIMIT_S
Each agent is a thread with a store client, a back end and a handler of its own, as each torchrun has them; the
store is served by this process. Prints the seconds from the first call to the last agent's rank, or "late".
"""

import datetime
import os
import sys
import threading
import time

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler


def join(port, number, ranks):
    store = TCPStore("127.0.0.1", port, is_master=False, timeout=datetime.timedelta(seconds=120))
    handler = DynamicRendezvousHandler.from_backend("load", store, C10dRendezvousBackend(store, "load"), number, number)
    ranks.append(handler.next_rendezvous()[1])


def main():
    number, limit_s = int(sys.argv[1]), float(sys.argv[2])
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    ranks = []
    began = time.monotonic()
    threads = [threading.Thread(target=join, args=(server.port, number, ranks), daemon=True) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, began + limit_s - time.monotonic()))
    took_s = time.monotonic() - began
    print(f"{took_s:.3f}" if sorted(ranks) == list(range(number)) else "late", flush=True)
    os._exit(0)  # threads that still wait do not hold the end


if __name__ == "__main__":
    main()
