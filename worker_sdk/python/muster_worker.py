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

Checkpoints keeps what save() writes, so that no world that was cut off is taken for the newest (docs/checkpoints.md).

Before the set of nodes changes, muster asks the workers to save, waits until they have, and starts the next round from
there: no step is lost. The lines that go over the socket are described in base/worker_lines.hpp.
"""

from __future__ import annotations

import os
import pathlib
import re
import socket
import sys
import time
from typing import Any, BinaryIO, Callable, NoReturn, TypeVar

__all__ = ["Checkpoints", "SupersededError", "Worker", "join"]

_PROGRESS_INTERVAL_S = 0.1
_PATIENCE_S = 1.0
_MAX_LINE = 64
_MAX_STEP = 999_999_999_999

_State = TypeVar("_State")
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


class SupersededError(RuntimeError):
    """Another run has gone on from these checkpoints: what this one computes counts no longer."""


class Checkpoints:
    """What a job has saved in one folder, a file for each checkpoint. All ranks may read, rank 0 alone saves.

        checkpoints = muster_worker.Checkpoints("/shared/demo", worker.round)
        state = checkpoints.load(torch.load, dist)  # None if there is none
        checkpoints.save(step, lambda file: torch.save(state, file))

    A world that was cut off from the others may go on saving after the next one has begun. So a file's name tells the run
    that saved it: its generation, a number that rank 0 claims when it begins, greater than any that is there, and its
    round. The newest checkpoint is the newest run's, whatever its step, and a run that has been superseded saves no more.
    """

    def __init__(self, folder: "str | os.PathLike[str]", launch_round: int, keep: int = 2, suffix: str = ".pt") -> None:
        """`launch_round` is Worker.round; the newest `keep` (1 or more) files stay. Makes the folder; raises OSError,
        ValueError."""
        _refuse_unless_number("launch_round", launch_round)
        if type(keep) is not int or keep < 1:
            raise ValueError(f"keep={keep!r}: expected an int of 1 or more, since what is being replaced must not be the last")
        self._folder, self._keep, self._suffix, self._told = pathlib.Path(folder), keep, suffix, False
        self._folder.mkdir(parents=True, exist_ok=True)
        self.run = (self._claim(), launch_round)

    def newest_first(self) -> "list[pathlib.Path]":
        """Whole files only. Any of them may be gone before it is opened, once another run saves: hence load()."""
        return [path for _, path in self._found()]

    def load(self, read: "Callable[[pathlib.Path], _State]", dist: Any = None) -> "_State | None":
        """What `read` makes of the newest; None if there is none. If that is gone when it is opened (FileNotFoundError),
        since another run has saved and keeps newer ones only, the newest that is there by then is read. Raises what
        `read` raises otherwise. With `dist` (torch.distributed) a collective call: what rank 0 reads, on every rank, which
        alone needs to see the folder; where `read` raises there, RuntimeError on the others."""
        if dist is None:
            return self._load(read)
        answer: "list[Any]" = [None, ""]
        error: "Exception | None" = None
        if dist.get_rank() == 0:
            try:
                answer[0] = self._load(read)
            except Exception as raised:
                error, answer[1] = raised, f"rank 0 cannot load from {self._folder}: {type(raised).__name__}: {raised}"
        dist.broadcast_object_list(answer, src=0)
        if error:
            raise error
        if answer[1]:
            raise RuntimeError(answer[1])
        return answer[0]

    def _load(self, read: "Callable[[pathlib.Path], _State]") -> "_State | None":
        listed = self.newest_first()
        while listed:
            try:
                return read(listed[0])
            except FileNotFoundError:
                before, listed = listed, self.newest_first()
                if listed == before:
                    raise
        return None

    def save(self, step: int, write: "Callable[[BinaryIO], object]") -> pathlib.Path:
        """Has `write` fill a new file, which is whole and on disk when this returns; older ones than `keep` are removed.
        Raises ValueError for a step that is none (0 to 999999999999); SupersededError; OSError, or what `write` raises:
        then all that was saved before is still there. What cannot be removed is told once on stderr, since it changes
        nothing of what is saved. (PyTorch 1 ends the process if it finds the disk full: let it save
        to an io.BytesIO, and write that.)"""
        _refuse_unless_number("step", step, _MAX_STEP)
        self._refuse_if_superseded()
        path = self._folder / f"step-{step:012d}-generation-{self.run[0]}-round-{self.run[1]}{self._suffix}"
        unfinished = path.with_name(path.name + ".new")
        try:
            with open(unfinished, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            self._refuse_if_superseded()
            os.replace(unfinished, path)
            _sync_folder(self._folder)
        except BaseException as error:
            self._remove(self._unfinished)
            if isinstance(error, FileNotFoundError):
                self._refuse_if_superseded()  # who has saved since has removed what this one was writing
            raise
        try:
            self._refuse_if_superseded()
        except SupersededError:  # since the look before
            self._remove(lambda: [path])
            raise
        except OSError:
            pass  # told below: what clears up has to look there, too
        in_the_way = [trouble for trouble in map(self._remove, (self._own_and_older_notes, self._unfinished,
                                                                lambda: self._beyond_those_kept(step))) if trouble]
        if in_the_way and not self._told:
            self._told = True
            print(f"{path}: saved, but what is no longer needed cannot be removed: {in_the_way[0]}", file=sys.stderr)
        return path

    def _claim(self) -> int:
        """A generation that no other run has; noted in the folder until this run has saved, or a later one has begun. Where that
        cannot be done, and for ranks that only read, just one that is newer than all."""
        newest = max([0, *(key[0] for key, _ in self._found()), *(generation for generation, _ in self._begun())])
        while os.environ.get("RANK", "0") == "0":
            newest += 1
            try:
                (self._folder / f".tmp-begun-run-{newest}").touch(exist_ok=False)
                self._remove(lambda: [note for generation, note in self._begun() if generation < newest])
                return newest
            except FileExistsError:
                continue  # another run begins at the same moment
            except OSError:
                return newest
        return newest + 1

    def _begun(self) -> "list[tuple[int, pathlib.Path]]":
        """(generation, note of it) of runs that may have saved nothing yet."""
        matches = (re.fullmatch(r"\.tmp-begun-run-(\d+)", name) for name in os.listdir(self._folder))
        return [(int(match[1]), self._folder / match[0]) for match in matches if match]

    def _found(self, ending: str = "") -> "list[tuple[tuple[int, int, int], pathlib.Path]]":
        """((generation, round, step), path), newest first; regular files only."""
        form = re.compile(r"step-(\d+)-generation-(\d+)-round-(\d+)" + re.escape(self._suffix + ending))
        names = ((form.fullmatch(name), self._folder / name) for name in os.listdir(self._folder))
        return sorted((((int(match[2]), int(match[3]), int(match[1])), path) for match, path in names
                       if match and path.is_file()), reverse=True)

    def _refuse_if_superseded(self) -> None:
        (generation, launch_round, _), path = next(iter(self._found()), ((*self.run, 0), None))
        if (generation, launch_round) > self.run:
            raise SupersededError(f"{self._folder}: round {launch_round} has taken over from these checkpoints and saved "
                                  f"{path.name if path else ''}; what round {self.run[1]} computes counts no longer")

    @staticmethod
    def _remove(listed: "Callable[[], list[pathlib.Path]]") -> "OSError | None":
        """As far as it can be; what is in the way first."""
        first = None
        try:
            paths = listed()
        except OSError as error:
            return error
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                first = first or error
        return first

    def _own_and_older_notes(self) -> "list[pathlib.Path]":
        return [note for generation, note in self._begun() if generation <= self.run[0]]

    def _beyond_those_kept(self, step: int) -> "list[pathlib.Path]":
        return [path for key, path in self._found() if key <= (*self.run, step)][self._keep:]

    def _unfinished(self) -> "list[pathlib.Path]":
        """By this run or an older one: it may be what leaves the disk no room."""
        return [path for key, path in self._found(".new") if key[:2] <= self.run]


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


def _sync_folder(folder: pathlib.Path) -> None:
    """So that a name given in it outlives a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse_unless_number(name: str, value: object, most: "int | None" = None) -> None:
    """A bool is none, though Python takes it for one."""
    if type(value) is not int or value < 0 or (most is not None and value > most):
        raise ValueError(f"{name}={value!r}: expected an int from 0 " + (f"to {most}" if most else "on"))


def _number(environment: "os._Environ[str] | dict[str, str]", name: str, default: int) -> int:
    text = environment.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name}={text}: expected a number, as torchrun or muster sets it") from None
