"""Breaks something at random moments and mends it a little later, in the words of scenarios."""

import heapq
import itertools
import re
import shlex
import time

import actions  # noqa: F401  they make the sentences known
from netns_lab import HasEnded
from sentences import understand
from stored_checkpoints import newest_first

# What is said first, for how long (s) it stays so, what is said then; {host} is a healthy one of the job. "" as the end:
# it mends itself.
FAULTS = (
    (4, "worker killed", "send SIGKILL to a random worker", (0, 0), ""),
    (2, "worker stopped for a while", "stop a random worker", (0.5, 3), "continue the stopped workers"),
    (3, "agent killed", "send SIGKILL to agent of {host}", (0.2, 3), "start {host}"),
    (2, "agent terminated", "send SIGTERM to agent of {host}", (0.2, 3), "start {host}"),
    (2, "host stopped for a while", "send SIGSTOP to all of {host}", (0.5, 6), "send SIGCONT to all of {host}"),
    (3, "host killed", "send SIGKILL to all of {host}", (0.2, 3), "start {host}"),
    (2, "host cut off", "cut off {host}", (0.5, 6), "reconnect {host}"),
    (1, "host not heard", "cut off what {host} send", (0.5, 6), "reconnect {host}"),
    (1, "host deaf", "cut off what {host} receive", (0.5, 6), "reconnect {host}"),
    (1, "host cut off from the daemon", "cut off {host} from the daemon", (0.5, 6), "reconnect {host}"),
    (2, "connections reset", "reset the connections of {host}", (0.1, 2), "reconnect {host}"),
    (2, "daemon killed", "send SIGKILL to the daemon", (0, 3), "start the daemon"),
    (1, "daemon stopped for a while", "send SIGSTOP to the daemon", (0.5, 2), "send SIGCONT to the daemon"),
    (1, "checkpoint damaged", "flip a bit of the newest checkpoint", (0, 0), ""),
    (1, "disk full", "fill the disk of checkpoint", (0.5, 3), "empty the disk of checkpoint"),
    (1, "half of the hosts killed", "send SIGKILL to half of the hosts", (0.2, 2), "start whoever is down"),
)

ENDING = ("worker killed", "agent killed", "agent terminated", "host killed", "half of the hosts killed")  # their round
HARMLESS_IN_A_ROW = 2  # faults that may end no round: what a job survives undisturbed proves little
LONGEST_GAP = 2.0  # of the mean one


def possible_faults(run):
    """(those that can be had here, {why: kinds} of those that are left out)."""
    possible, left_out = [], {}
    for fault in FAULTS:
        _, kind, text, _, _ = fault
        known, _ = understand(shlex.split(text.format(host="n1")))
        if known.needs_network and not run.lab.real:
            left_out.setdefault("needs a network for each host", []).append(kind)
        elif "disk" in text.split() and "checkpoint" not in run.scenario.disks:
            left_out.setdefault("needs to mount a tmpfs", []).append(kind)
        else:
            possible.append(fault)
    return possible, left_out


def told_to_wait_s(output):
    """Of a launcher that was sent away since its host failed too often; else 0."""
    found = re.search(r"it may come in again in (?:(\d+) min)? ?(?:([\d.]+) s)?", output)
    return 60 * int(found[1] or 0) + float(found[2] or 0) + 1 if found else 0


class Injector:
    def __init__(self, run, dice, every_s):
        self._run, self._dice, self._every_s = run, dice, every_s
        self._next_at = time.monotonic() + self._gap_s()
        self._harmless = HARMLESS_IN_A_ROW  # the first one ends a round
        self._repairs, self._serial = [], itertools.count()  # (time, serial, sentence, what it frees)
        self._faults, self.left_out = possible_faults(run)
        self._busy = set()  # hosts, "daemon", "disk": broken now
        self.counts = {}
        self.done = []  # (time, sentence)
        self._not_before = {}  # launch that has ended: time

    def step(self, now):
        """What is due by now."""
        while self._repairs and self._repairs[0][0] <= now:
            _, _, text, freed = heapq.heappop(self._repairs)
            self._busy -= freed
            self._say(text)
        if now >= self._next_at:
            # What cannot be done just now (a host that is down cannot be cut off) makes room for the next choice at once.
            if self._break_something(now):
                self._next_at = now + self._gap_s()

    def calm_down(self):
        """Everything that is broken is mended now."""
        while self._repairs:
            _, _, text, freed = heapq.heappop(self._repairs)
            self._busy -= freed
            self._say(text)

    def restart_ended(self):
        """As an operator, or a scheduler, would; but not those that wait for their restart, or once the job is done. One that
        was sent away with a time is started when that is over.
        """
        for name, launch in self._run.launches.items():
            code = launch.process.poll()
            if code in (None, 0) or name in self._busy or self._run.succeeded():
                continue
            if launch not in self._not_before:
                self._not_before[launch] = time.monotonic() + told_to_wait_s(launch.output())
            if time.monotonic() >= self._not_before[launch]:
                self._say(f"start {name}")

    def _gap_s(self):
        return min(self._dice.expovariate(1 / self._every_s), LONGEST_GAP * self._every_s)

    def _break_something(self, now):
        """False if what chance chose cannot be done now."""
        run = self._run
        faults = [one for one in self._faults if self._harmless < HARMLESS_IN_A_ROW or one[1] in ENDING]
        _, kind, text, (low, high), repair = self._dice.choices(faults, [fault[0] for fault in faults])[0]
        host = self._choose_host()
        needs = self._needs(text, host)
        if host is None or needs & self._busy or not self._possible(text):
            return False
        before = set(run.down)
        text, repair = text.format(host=host), repair.format(host=host)
        if not self._say(text, is_fault=True):
            return False
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self._harmless = 0 if kind in ENDING else self._harmless + 1
        broken = needs | (set(run.down) - before if "half" in text else set())
        if repair:
            self._busy |= broken
            heapq.heappush(self._repairs, (now + self._dice.uniform(low, high), next(self._serial), repair, broken))
        return True

    def _choose_host(self):
        """A healthy one, if another one stays healthy."""
        healthy = [name for name, launch in self._run.launches.items()
                   if launch.process.poll() is None and name not in self._busy and name not in self._run.down]
        return self._dice.choice(healthy) if len(healthy) > 1 else None

    @staticmethod
    def _needs(text, host):
        if "{host}" in text:
            return {host}
        return {word for word in ("daemon", "disk", "worker", "half") if word in text.split()}

    def _possible(self, text):
        if "newest checkpoint" in text:
            # Of two damaged ones the job could not know which is whole.
            return self._run.damaged_checkpoints < 1 + self._run.step() // 100 and len(newest_first(self._run)) > 1
        return "worker" not in text or bool(self._run.workers())

    def _say(self, text, is_fault=False):
        """False if it came too late: what it was about is gone, or has been started already."""
        if text == "start whoever is down":
            for name in [name for name, launch in self._run.launches.items() if launch.process.poll() is not None]:
                self._say(f"start {name}")
            return True
        words = text.split()
        if words[0] == "start" and words[1] in self._run.launches and self._run.launches[words[1]].process.poll() is None:
            return False
        now = time.monotonic()
        known, values = understand(shlex.split(text))
        try:
            known.act(self._run, *values)
        except (HasEnded, KeyError, FileNotFoundError):
            return False
        except AssertionError:  # it waited for a worker of a job that ended just now
            if not self._run.succeeded():
                raise
            return False
        self._run.said.append((now, text))
        if is_fault:
            self._run.faults.append((now, text))
        return True
