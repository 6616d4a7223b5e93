"""Reads files of lines while they grow, and remembers when each line came."""

import os
import threading
import time

INTERVAL_S = 0.01


class Watch:
    """One thread for all files. lines(path) may be called from any thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self._files = {}  # path: [bytes read, rest of a line, [(monotonic time, line)]]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def add(self, path):
        with self._lock:
            self._files.setdefault(path, [0, b"", []])

    def lines(self, path):
        """All that was written until now."""
        self._read_all()
        with self._lock:
            return list(self._files[path][2])

    def close(self):
        """What was written until now is read."""
        self._stopped.set()
        self._thread.join()
        self._read_all()

    def _run(self):
        while not self._stopped.wait(INTERVAL_S):
            self._read_all()

    def _read_all(self):
        with self._lock:
            for path, state in self._files.items():
                try:
                    if os.path.getsize(path) > state[0]:
                        self._read(path, state)
                except FileNotFoundError:
                    continue

    @staticmethod
    def _read(path, state):
        with open(path, "rb") as f:
            f.seek(state[0])
            data = f.read()
        state[0] += len(data)
        *whole, state[1] = (state[1] + data).split(b"\n")
        now = time.monotonic()
        state[2] += [(now, line.decode(errors="replace")) for line in whole]
