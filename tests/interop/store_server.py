"""PyTorch's own TCPStore server. Prints its port, serves until standard input ends."""

import sys
from datetime import timedelta

import torch.distributed as dist

store = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=20), wait_for_workers=False)
store.set("from_python", "hello")
print(store.port, flush=True)
sys.stdin.read()
