"""The sentences of scenario files: each is a pattern, and the function that carries it out.

A word in capitals stands for a value of that kind (KINDS); every other word stands for itself. A kind turns a word into
a value or raises ValueError that says what was expected.
"""

import difflib
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
    return ("all",) if word == "all" else tuple(host(part) for part in word.split(","))


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
    if not word.isdigit():
        raise ValueError("a number is wanted")
    return int(word)


def folder(word):
    if word not in FOLDERS:
        raise ValueError(f"a folder is one of {', '.join(FOLDERS)}")
    return word


KINDS: dict[str, Callable[[str], Any]] = {
    "HOST": host, "HOSTS": hosts, "TIME": seconds, "SHIFT": shift, "SIGNAL": signal_by_name, "NUMBER": number,
    "FOLDER": folder, "TEXT": str,
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
    text = " ".join(words)
    nearest = difflib.get_close_matches(text, [s.pattern for s in SENTENCES], 1, 0.0)
    raise ValueError(f"no such sentence: {text}; the nearest is: {nearest[0] if nearest else 'none'}")
