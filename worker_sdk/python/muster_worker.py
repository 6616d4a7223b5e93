"""What a Python worker can say to muster, and hear from it. Standard library only.

    import muster_worker, torch.distributed as dist

    worker = muster_worker.join()             # works under torchrun too, where nobody asks
    dist.init_process_group("gloo")
    for step, batch in enumerate(loader, start=first_step):
        train(batch)
        worker.progress(step)
        if worker.drain_requested(dist):      # the same answer on every rank
            if worker.rank == 0:
                save(step)
            worker.drained(step)              # leaves with exit code 0; the next round goes on from there
    worker.done()                             # for muster --expect-done: exit code 0 means success

Before the set of nodes changes, muster asks the workers to save, waits until they have, and starts the next round from
there: no step is lost. The lines that go over the socket are described in base/worker_lines.hpp.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import Any, NoReturn

__all__ = ["Worker", "join"]

_PROGRESS_INTERVAL_S = 0.1
_PATIENCE_S = 1.0
_MAX_LINE = 64

_flags: "dict[str, Any]" = {}


class Worker:
    """One for each process. Not thread-safe. Attributes: rank, local_rank, world_size, restart_count, round."""

    def __init__(self, environment: "os._Environ[str] | dict[str, str]" = os.environ) -> None:
        """Reads torchrun's variables; without them this is a world of one. Raises ValueError that names a variable
        that is no number."""
        self.rank = _number(environment, "RANK", 0)
        self.local_rank = _number(environment, "LOCAL_RANK", 0)
        self.world_size = _number(environment, "WORLD_SIZE", 1)
        self.restart_count = _number(environment, "TORCHELASTIC_RESTART_COUNT", 0)
        self.round = _number(environment, "MUSTER_ROUND", 0)
        self._asked = False
        self._rest = b""
        self._progress_sent_at = float("-inf")
        self._socket = self._connect(environment.get("MUSTER_CHANNEL", ""))
        self._send(f"hello 1 {self.round} {self.local_rank}\n", _PATIENCE_S)

    def progress(self, step: int) -> None:
        """This step is done: for whoever looks at the job. Cheap enough for every step."""
        now = time.monotonic()
        if now - self._progress_sent_at >= _PROGRESS_INTERVAL_S:
            self._progress_sent_at = now
            self._send(f"progress {int(step)}\n", 0.0)

    def asked_to_save(self) -> bool:
        """This rank was asked to save. The others may hear of it a step earlier or later: before acting on it, ranks
        have to agree, as drain_requested() does."""
        while self._socket:
            try:
                self._socket.settimeout(0)
                data = self._socket.recv(256)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._asked = self._asked or any(line.split()[:1] == [b"save"] for line in lines)
            if not data or len(self._rest) >= _MAX_LINE:
                self._close()
        return self._asked

    def drain_requested(self, dist: Any = None) -> bool:
        """Some rank was asked to save; the same answer on every rank. With `dist` (torch.distributed) a collective
        call of one all-reduce, which all ranks have to make at the same step; not needed in a world of one."""
        asked = self.asked_to_save()
        if self.world_size == 1:
            return asked
        if dist is None:
            raise ValueError("drain_requested() in a world of several needs torch.distributed to agree over")
        flag = _flag_on("cuda" if dist.get_backend() == "nccl" else "cpu")
        flag.fill_(int(asked))
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    def drained(self, step: int) -> NoReturn:
        """All up to this step is saved (0: there is nothing to save). Leaves with exit code 0 (SystemExit)."""
        self._send(f"safe {int(step)}\n", _PATIENCE_S)
        sys.exit(0)

    def done(self) -> None:
        """The work of this rank is finished. Under `muster --expect-done` an exit with 0 that was not announced so (or by
        drained()) counts as a failure: some library left in the middle."""
        self._send("done\n", _PATIENCE_S)

    def _connect(self, name: str) -> "socket.socket | None":
        if not name:
            return None
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            end.connect("\0" + name[1:] if name.startswith("@") else name)
        except OSError as error:
            end.close()
            print(f"rank {self.rank}: MUSTER_CHANNEL {name}: {error.strerror or error}; this worker cannot be asked "
                  "to save before the job changes its size", file=sys.stderr)
            return None
        return end

    def _send(self, line: str, patience_s: float) -> None:
        if not self._socket:
            return
        self._socket.settimeout(patience_s)
        try:
            self._socket.sendall(line.encode())
        except (BlockingIOError, socket.timeout):
            pass  # the agent does not read just now: it hears the next one
        except OSError:
            self._close()

    def _close(self) -> None:
        if self._socket:
            self._socket.close()
        self._socket = None


def join() -> Worker:
    """This process as a worker; says hello to its agent where there is one."""
    return Worker()


def _flag_on(device: str) -> Any:
    """One tensor for all calls, which lives as long as the process. PyTorch 1's Gloo group drops a collective's tensor in
    a thread of its own, a moment after the call is over: if nobody else had it any more, that needs Python's lock, and
    a process that was ending just then waited for that thread for ever, with the lock in its hands."""
    if device not in _flags:
        import torch

        _flags[device] = torch.zeros(1, dtype=torch.int32, device=device)
    return _flags[device]


def _number(environment: "os._Environ[str] | dict[str, str]", name: str, default: int) -> int:
    text = environment.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name}={text}: expected a number, as torchrun or muster sets it") from None
