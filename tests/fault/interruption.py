"""Ending on SIGINT, SIGTERM and SIGHUP: hosts are taken down first, logs are kept, and no traceback is shown."""

import contextlib
import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(SystemExit):
    """Its exit code is 128 plus the signal's number, as shells have it."""

    def __init__(self, number):
        super().__init__(128 + number)
        self.name = signal.Signals(number).name


class _Held:
    """The signal that came while signals were held back."""

    depth = number = 0


def _interrupt(number, _frame):
    if _Held.depth:
        _Held.number = number
        return
    for other in SIGNALS:  # what follows is cleaning up, for which there are time limits
        signal.signal(other, signal.SIG_IGN)
    raise Interrupted(number)


def end_on_signals():
    """From here on they raise Interrupted, once. Whoever started this with nohup wants no SIGHUP to end it."""
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


@contextlib.contextmanager
def held_back():
    """What is done here is done to its end; a signal that comes meanwhile counts afterwards."""
    _Held.depth += 1
    try:
        yield
    finally:
        _Held.depth -= 1
    if _Held.number and not _Held.depth:
        _interrupt(_Held.number, None)


def refuse(sentence):
    """What the user asked for cannot be: exit code 2."""
    print(f"chaos: {sentence}", file=sys.stderr)
    raise SystemExit(2)
