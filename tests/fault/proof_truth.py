"""Proof 4, truth, for faults that chance composed.

Forth: each sentence on why a round ended names somebody to whom just that was done, or what follows from it, at most so
long before. Back: each fault that must end the round that runs is followed by the end of that round, and named, or
another fault of the same round is, behind which it cannot be seen. And a launcher to which nothing was done ends with 0;
or it was sent away since its host failed too often, and as often as it says.
"""

import re
from dataclasses import dataclass

from hits import DAEMON, NO_ANSWER, hits

TOLD_WITHIN_S = 20.0  # after a fault, or after it is mended: heartbeats of 3 s, the time to stop, a busy machine
AWAY_S = 75.0  # the same, where the daemon was away meanwhile: nodes that do not come back are lost after 60 s
AT_THE_END_S = 5.0  # a fault that comes so shortly before the job's end may find nobody who still works
KILLED = ("worker killed", "host killed")
FORTH = (  # what a sentence says, and what must have been done to the host named in it (to anybody, where "any")
    (r"rank (?P<rank>\d+) on (?P<host>n\d+) was killed by SIGKILL", KILLED, "host"),
    (r"rank \d+ on (?P<host>n\d+) was killed by SIGTERM", ("agent terminated",), "host"),
    (r"rank \d+ on (?P<host>n\d+) (?:exited with code 1\b|was killed by SIGABRT)", NO_ANSWER, "any"),
    (r"(?P<host>n\d+) was lost", NO_ANSWER, "host"),
    (r"(?P<host>n\d+) (?:leaves|left) \(SIGTERM", ("agent terminated",), "host"),
    # While the daemon is away the workers of all hosts hear of one that leaves, from each other.
    (r"(?P<host>n\d+)'s workers saved and left unasked", ("agent terminated",), "any"),
    (r"(?P<host>n\d+) stopped its workers by itself", ("agent terminated", *NO_ANSWER), "host"),
    (r"was ending when the daemon came back", ("daemon killed", "agent terminated", *KILLED, *NO_ANSWER), "any"),
    (r"did not come back after the daemon had", ("agent terminated", *NO_ANSWER), "any"),
)
SENT_AWAY = r"rendezvous: (?P<host>n\d+) failed (?P<times>\d+) times in the last minute"
MINUTE_S = 60.0
NO_END = r"all \d+ nodes are here|\d+ of \d+|a job of one node"  # why a round forms that none went before
ENDS_ROUND = ("worker killed", "agent killed", "agent terminated", "host killed")


@dataclass
class Round:
    formed: float  # s
    hosts: set
    ends: list  # (time, sentence), of each node that tells of it


def rounds_of(run):
    """{number: Round}, from what all launchers say. Of an end the next round's line tells, too: often that alone does."""
    lines = [(when, launch.node.name, line) for launch in run.all_launches
             for when, line in run.watch.lines(launch.output_path)]
    found = {}
    for when, host, line in lines:
        if match := re.match(r"muster: round (\d+): \d+ nodes?,", line):
            known = found.setdefault(int(match[1]), Round(when, set(), []))
            known.formed = min(known.formed, when)
            known.hosts.add(host)
    for when, _, line in lines:
        number, sentence = end_told_by(line, sorted(found))
        if number:
            found[number].ends.append((when, sentence))
    return found


def end_told_by(line, numbers):
    """(round, why it ended); (0, "") if the line tells of none of these rounds."""
    if (match := re.match(r"muster: round (\d+) ends: (.*)", line)) and int(match[1]) in numbers:
        return int(match[1]), match[2].split("; waiting for")[0]
    match = re.match(r"muster: round (\d+): \d+ nodes?,.*?; formed in [^;]*; (.*)", line)
    if match and not re.match(NO_END, match[2]):
        before = [number for number in numbers if number < int(match[1])]
        return (before[-1], match[2]) if before else (0, "")
    return 0, ""


def rounds_ended_by_faults(run):
    """How many; a round that ends because a node joins counts for none."""
    return sum(any("joined" not in sentence for _, sentence in one.ends) for one in rounds_of(run).values())


def absence(done, since, until):
    """The hit that kept the daemon away at any time between; or None. Whoever is heard first once it is back is named."""
    return next((hit for hit in done if hit.host == DAEMON and hit.when <= until and hit.until >= since), None)


def allowed_s(done, since, until):
    return AWAY_S if absence(done, since, until) else TOLD_WITHIN_S


def is_cause(hit, when, done):
    return hit.when <= when <= hit.until + allowed_s(done, hit.when, when)


def explained(sentence, when, done):
    """The hit that a sentence tells of; None if it tells of a join alone. AssertionError if nothing was done."""
    if re.match(r"nodes? n\d+.* joined", sentence):
        return None
    for pattern, whats, whom in FORTH:
        if not (match := re.search(pattern, sentence)):
            continue
        named = match.groupdict()
        for hit in reversed(done):
            fits = hit.what in whats and (whom == "any" or hit.host == named["host"])
            if hit.what == "worker killed" and "rank" in named:
                fits = fits and hit.rank == int(named["rank"])
            if fits and is_cause(hit, when, done):
                return hit
        raise AssertionError(f"truth: nothing that explains it was done in time, but: {sentence}")
    raise AssertionError(f"truth: of what was done, nothing leads to this: {sentence}")


def names(sentence, hit):
    """Does it name whom that hit?"""
    return re.search(rf"\b{hit.host}\b", sentence) is not None


def running(rounds, hit):
    """The number of the round that ran on that host; None if there was none, or it was about to end."""
    before = [number for number, one in rounds.items() if one.formed <= hit.when and hit.host in one.hosts]
    newest = max((number for number, one in rounds.items() if one.formed <= hit.when), default=None)
    if not before or max(before) != newest:
        return None
    ended = [when for when, _ in rounds[newest].ends]
    return None if ended and min(ended) <= hit.when else newest


def check_named(rounds, done, ended_at):
    """(faults named, [those that are hidden behind another one])."""
    named, hidden = 0, []
    for hit in done:
        number = running(rounds, hit) if hit.what in ENDS_ROUND else None
        if number is None or hit.when > ended_at - AT_THE_END_S:
            continue
        in_time = [(when, sentence) for when, sentence in rounds[number].ends
                   if hit.when <= when <= hit.when + allowed_s(done, hit.when, when)]
        assert in_time, f"truth: nobody tells of the end of round {number} after this: {hit}"
        if any(names(sentence, hit) for _, sentence in in_time):
            named += 1
            continue
        when, sentence = in_time[0]
        other = f"{away}, and: " if (away := absence(done, hit.when, when)) else ""
        assert other or explained(sentence, when, done) != hit, f"truth: nobody names this: {hit}; but: {sentence}"
        hidden.append(f"{hit} (behind: {other}{sentence.split(';')[0]})")
    return named, hidden


def failures_of(host, since, until, rounds, done):
    """How often a host failed then, at most: what was told of it, and what was done to it and nobody lived to tell. What is
    told explains so many faults as it names failures: of two in a row the earlier one may have been told by nobody.
    """
    told = []
    for one in rounds.values():
        # Each launcher that tells of an end has its own list of what came next: the longest one counts.
        lists = [(when, len(re.findall(rf"\bon {host} (?:was killed|exited)|\b{host} was lost", sentence)))
                 for when, sentence in one.ends if since <= when <= until]
        if lists:
            told.append(max(lists, key=lambda found: found[1]))
    untold = [hit for hit in done if hit.host == host and hit.what in KILLED + NO_ANSWER and since <= hit.when <= until]
    for when, times in sorted(told):
        causes = [hit for hit in untold if is_cause(hit, when, done)]
        for hit in causes[max(0, len(causes) - times):]:
            untold.remove(hit)
    return sum(times for _, times in told) + len(untold)


def was_sent_away(run, launch, rounds, done):
    """Does it say so? AssertionError if its host did not fail so often."""
    for when, line in run.watch.lines(launch.output_path):
        if not (match := re.search(SENT_AWAY, line)):
            continue
        host, times = match["host"], int(match["times"])
        found = failures_of(host, when - MINUTE_S - TOLD_WITHIN_S, when, rounds, done)
        assert host == launch.node.name and found >= times, (
            f"truth: {launch.node.name} was told that {host} failed {times} times, which it did {found} times: {line}")
        return True
    return False


def check_exits(run, rounds, done):
    """How many launchers ended with 0; a launcher may end otherwise only if something was done to it."""
    if not run.succeeded():
        return 0
    well = 0
    for place, (launch, (started, name)) in enumerate(zip(run.all_launches, run.starts)):
        later = [when for when, other in run.starts[place + 1:] if other == name]
        until = later[0] if later else float("inf")
        code = launch.process.poll()
        hurt = [hit for hit in done if hit.host == name and hit.until >= started and hit.when <= until]
        sent_away = was_sent_away(run, launch, rounds, done) and code == 75
        assert code == 0 or hurt or sent_away, f"truth: nothing was done to {name}, and its launcher ended with {code}"
        well += code == 0
    return well


def check(run):
    """The sentence on what was found; AssertionError for an end without a cause, or a fault without an end."""
    done, rounds = hits(run), rounds_of(run)
    sentences = {(number, sentence): when
                 for number, one in rounds.items() for when, sentence in sorted(one.ends, reverse=True)}
    for (_, sentence), when in sentences.items():
        explained(sentence, when, done)
    named, hidden = check_named(rounds, done, run.ended_at)
    well = check_exits(run, rounds, done)
    told = (f"truth: {len(sentences)} sentences on why a round ended fit what was done; {named} faults are named by "
            f"survivors, {len(hidden)} are hidden behind another one; {well} launchers ended with 0, no unhurt one otherwise")
    return "\n  ".join([told, *hidden])
