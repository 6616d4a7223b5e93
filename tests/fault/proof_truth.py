"""Proof 4, truth, for faults that chance composed: whoever muster names as lost, leaving or killed was hurt a moment
before. (A scenario states what is to be told of its own faults by itself.)
"""

import re

MEMORY_S = 60.0  # a fault may show this much later
NAMED = (
    (r"(n\d+) was lost", ("send SIGKILL to a", "send SIGSTOP", "send SIGTERM", "cut off", "reset", "start", "half", "daemon")),
    (r"rank \d+ on (n\d+) was killed by SIGKILL", ("worker", "send SIGKILL", "half")),
)


def hurt_before(run, name, when, kinds):
    """Something was done to that host, or to one that chance named, within the memory's time."""
    for at, text in run.said:
        words = text.replace(",", " ").split()
        anybody = not any(re.fullmatch(r"n\d+", word) for word in words)
        if when - MEMORY_S <= at <= when and (name in words or anybody) and any(kind in text for kind in kinds):
            return True
    return False


def check(run):
    checked = set()
    for launch in run.all_launches:
        for when, line in run.watch.lines(launch.output_path):
            if not re.match(r"muster: round \d+ ends", line) or line in checked:
                continue
            for pattern, kinds in NAMED:
                for name in re.findall(pattern, line):
                    assert hurt_before(run, name, when, kinds), f"truth: nothing was done to {name}, but: {line}"
            checked.add(line)
    return f"truth: {len(checked)} sentences on why a round ended name what was done"
