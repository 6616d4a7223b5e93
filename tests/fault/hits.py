"""Who was hurt, when and how: from the words of what was done, and from what the actions noted of chance's choices."""

import re
from dataclasses import dataclass

DAEMON = "daemon"
ONE_OR_MORE = r"(n\d+(?:,n\d+)*)"
# What is said, what that is to a host, what ends it. The last is "" for what is over at once.
NAMED = (
    (rf"send SIGKILL to agent of {ONE_OR_MORE}", "agent killed", ""),
    (rf"send SIGTERM to agent of {ONE_OR_MORE}", "agent terminated", ""),
    (rf"send SIGKILL to all of {ONE_OR_MORE}", "host killed", ""),
    (rf"send SIGSTOP to all of {ONE_OR_MORE}", "host stopped", "send SIGCONT to all of {host}"),
    (rf"cut off (?:what )?{ONE_OR_MORE}.*", "cut off", "reconnect {host}"),
    (rf"reset the connections of {ONE_OR_MORE}.*", "cut off", "reconnect {host}"),
    (r"send SIGKILL to the (daemon)", "daemon killed", "start the daemon"),
    (r"send SIGSTOP to the (daemon)", "daemon stopped", "send SIGCONT to the daemon"),
)
NO_ANSWER = ("agent killed", "host killed", "host stopped", "cut off")  # the node itself can tell nothing, or late


@dataclass(frozen=True)
class Hit:
    when: float  # s, of the monotonic clock
    until: float  # when it was mended
    what: str
    host: str  # or DAEMON
    rank: int = -1  # of a worker

    def __str__(self):
        return f"{self.what}: " + (f"rank {self.rank} on {self.host}" if self.rank >= 0 else self.host)


def mended_at(said, when, text):
    return next((at for at, repair in said if at >= when and text in repair.replace(",", " ").split(" and ")), when)


def named_hits(said):
    found = []
    for when, text in said:
        for pattern, what, repair in NAMED:
            if not (match := re.fullmatch(pattern, text)):
                continue
            for host in match[1].split(","):
                until = mended_at(said, when, repair.format(host=host)) if repair else when
                found.append(Hit(when, until, what, host))
    return found


def hits(run):
    """In the order of time. run.chosen: (time, what, host, rank) of what the words do not tell."""
    found = named_hits(run.said)
    for when, what, host, rank in run.chosen:
        until = mended_at(run.said, when, "continue the stopped workers") if what == "worker stopped" else when
        found.append(Hit(when, until, what, host, rank))
    return sorted(found, key=lambda hit: hit.when)
