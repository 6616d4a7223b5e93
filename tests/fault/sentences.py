"""The sentences of scenario files: each is a pattern, and the function that carries it out.

A word in capitals stands for a value of that kind (KINDS); every other word stands for itself. A kind turns a word into
a value or raises ValueError that says what was expected.
"""

import difflib
import ipaddress
import re
import signal
from dataclasses import dataclass
from typing import Any, Callable

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}
FOLDERS = ("checkpoint", "logs", "state")


def host(word):
    if not re.fullmatch(r"n[1-9]\d?", word):
        raise ValueError("a host is n1, n2, ...")
    return word


def hosts(word):
    """In the order given; "all" is settled when the scenario runs."""
    if word == "all":
        return ("all",)
    names = tuple(host(part) for part in word.split(","))
    if len(set(names)) < len(names):
        raise ValueError(f"a host is named twice in {word}")
    return names


def seconds(word):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)", word)
    if not match:
        raise ValueError("a time is a number with ms, s or m, as in 2.5s")
    return float(match[1]) * UNITS[match[2]]


def shift(word):
    if not re.fullmatch(r"[+-]\d+(s|m|h)", word):
        raise ValueError("a change of the clock is as in +15m or -90s")
    return word


def signal_by_name(word):
    try:
        return signal.Signals[word]
    except KeyError:
        raise ValueError("a signal is named as in SIGKILL") from None


def number(word):
    if not re.fullmatch("[0-9]{1,18}", word):
        raise ValueError("a number is wanted")
    return int(word)


def number_of(low, high, what):
    """A kind of number with bounds."""

    def read(word):
        value = number(word)
        if not low <= value <= high:
            raise ValueError(f"{what} is a number of {low} to {high}, not {word}")
        return value

    return read


def text(word):
    if not word:
        raise ValueError("a text is wanted: an empty one is shown always")
    return word


def address(word):
    try:
        return str(ipaddress.IPv4Address(word))
    except ValueError:
        raise ValueError(f"an address is as in 10.77.0.9, not {word}") from None


def folder(word):
    if word not in FOLDERS:
        raise ValueError(f"a folder is one of {', '.join(FOLDERS)}")
    return word


KINDS: dict[str, Callable[[str], Any]] = {
    "HOST": host, "HOSTS": hosts, "TIME": seconds, "SHIFT": shift, "SIGNAL": signal_by_name, "NUMBER": number,
    "FOLDER": folder, "TEXT": text, "CODE": number_of(0, 255, "an exit code"), "PORT": number_of(1, 65535, "a port"),
    "PERCENT": number_of(0, 100, "a percentage"), "ADDRESS": address,
}


@dataclass(frozen=True)
class Sentence:
    pattern: str
    act: Callable[..., None]
    needs_network: bool  # cannot be done where hosts are loopback addresses

    def values(self, words):
        """The values of these words; None if they are another sentence."""
        pattern = self.pattern.split()
        if len(pattern) != len(words):
            return None
        found = []
        for wanted, word in zip(pattern, words):
            if wanted in KINDS:
                found.append((KINDS[wanted], word))
            elif wanted != word:
                return None
        return [kind(word) for kind, word in found]


SENTENCES: list[Sentence] = []


def sentence(pattern, needs_network=False):
    """Makes the function below the one that carries out such a sentence: act(run, *values)."""

    def register(act):
        SENTENCES.append(Sentence(pattern, act, needs_network))
        return act

    return register


def understand(words):
    """(sentence, values). Raises ValueError that says what is wrong, with the nearest sentence that there is."""
    for known in SENTENCES:
        values = known.values(words)
        if values is not None:
            return known, values
    said = " ".join(words)
    nearest = difflib.get_close_matches(said, [s.pattern for s in SENTENCES], 1, 0.0)
    raise ValueError(f"no such sentence: {said}; the nearest is: {nearest[0] if nearest else 'none'}")
