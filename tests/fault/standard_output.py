"""Standard output that may go away (its reader ends, the disk is full): the work ends in good order, and what could not
be said there is said on standard error.
"""

import io
import os
import sys

from interruption import Interrupted, refuse


class OutputLost(Interrupted):
    """Raised once, by the first line that cannot be written. Exit code 1."""

    def __init__(self):
        SystemExit.__init__(self, 1)
        self.name = "the loss of its standard output"


class StandardOutput(io.TextIOBase):
    """Whole lines, as they come; once one could not be written, all go to standard error."""

    def __init__(self, descriptor=1):
        super().__init__()
        self._descriptor, self._line, self._lost = descriptor, "", False

    def writable(self):
        return True

    def write(self, text):
        self._line += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self):
        text, self._line = self._line, ""
        rest = text.encode(errors="surrogateescape")  # file names that are not UTF-8 are shown as they are
        try:
            while rest and not self._lost:
                rest = rest[os.write(self._descriptor, rest):]
        except OSError as error:
            self._lost = True
            say_instead(f"chaos: standard output is lost ({error.strerror}); the rest is said here:\n".encode() + rest)
            raise OutputLost from None
        if rest:
            say_instead(rest)


def say_instead(data):
    try:
        while data:
            data = data[os.write(2, data):]
    except OSError:
        return  # nobody is left to whom it could be said


def use_standard_output():
    """To be called first. What would be opened in the place of a closed standard stream would be written to by others."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stderr = sys.stderr or open(2, "w", closefd=False)
    if sys.stdout is None:
        refuse("standard output is closed, so nothing could be told; > /dev/null if that is meant")
    sys.stdout = StandardOutput()
