"""What a scenario says and cannot mean: it would be taken without a word, and prove nothing.

check(scenario) raises WrongLine for the first line of that kind. What the words alone cannot tell is left to the run.
"""

import re

from sentences import KINDS

FAULT_WORDS = ("send", "freeze", "cut", "reset", "fill", "make", "truncate", "flip", "take", "let", "start", "set", "lose", "go")
MARKS = ("folder", "seed", "rank", "round", "pid")  # the last three are for the child program
# A sentence that means nothing unless one of those was said before, about the same if it names something.
AFTER = {
    "expect the remembered workers": ("remember the workers",),
    "continue the stopped workers": ("stop a random worker",),
    "thaw the frozen workers": ("freeze worker NUMBER",),
    "empty the disk of FOLDER": ("fill the disk of FOLDER",),
    "expect that HOSTS name whom chance hit": ("send SIGNAL to a random worker",),
}
SINCE_THE_FAULT = ("expect exit CODE of HOSTS within TIME", "expect that round NUMBER ends within TIME",
                   "expect round NUMBER within TIME")
OF_LAUNCHERS = re.compile(r"expect exit .*|.*agent of HOSTS|.* HOSTS (do not )?show TEXT|.*rounds on HOSTS|.*HOSTS are in a round.*")
OF_WORKERS = re.compile(r".*( a random| every)? worker( NUMBER)?|send SIGNAL to half of the hosts")
OF_THE_DAEMON = ("start the daemon", "expect that the daemon shows TEXT", "cut off HOST from its peers")
RISING = ("await step NUMBER", "await a checkpoint of step NUMBER")


class WrongLine(ValueError):
    def __init__(self, line, why):
        super().__init__(why)
        self.line = line


def is_fault(step):
    return step.text.split()[0] in FAULT_WORDS


def pattern(step):
    return step.sentence.pattern


def value(step, kind):
    """Of the first word of this kind; None without one."""
    kinds = [word for word in pattern(step).split() if word in KINDS]
    return step.values[kinds.index(kind)] if kind in kinds else None


def hosts_of(scenario, step):
    """Those that it names."""
    one, many = value(step, "HOST"), value(step, "HOSTS")
    return ([one] if one else []) + (scenario.resolve(many) if many else [])


def starts(scenario, steps):
    """{host: the step that started it last, or None if the head did}."""
    started = dict.fromkeys(scenario.resolve(scenario.start))
    for step in steps:
        if pattern(step) == "start HOSTS":
            started.update(dict.fromkeys(hosts_of(scenario, step), step))
    return started


def ends(scenario, steps):
    """{host: the step that has awaited its launcher's end}, of those that were not started again."""
    ended = {}
    for step in steps:
        for name in hosts_of(scenario, step):
            if pattern(step).startswith("expect exit"):
                ended[name] = step
            elif pattern(step) == "start HOSTS":
                ended.pop(name, None)
    return ended


# Each rule: what is wrong with `step`, which comes after the steps `before`; nothing if it says nothing against it.

def unknown_host(scenario, _before, step):
    for name in hosts_of(scenario, step):
        if name not in scenario.all_hosts():
            return f"there is no host {name}, but {', '.join(scenario.all_hosts())}"
    return None


def head_is_missing(scenario, _before, step):
    folder, said = value(step, "FOLDER"), pattern(step)
    if "disk of FOLDER" in said and folder not in scenario.disks:
        return f"{folder} has no disk of its own: say 'disk: {folder} 8M' in the head"
    if said == "set the clock of HOST to SHIFT" and (name := value(step, "HOST")) not in scenario.clocks:
        return f"{name} has no clock of its own: say 'clock: {name} +0s' in the head"
    if said in OF_THE_DAEMON and not scenario.daemon:
        return "there is no standing daemon: say 'daemon: HOST' in the head"
    for name in hosts_of(scenario, step) if "parent of" in said else []:
        if name not in scenario.parents:
            return f"the launcher of {name} has no parent to be killed: say 'parent: {name}' in the head"
    return None


def nothing_to_refer_to(_scenario, before, step):
    wanted = AFTER.get(pattern(step))
    folder = value(step, "FOLDER")
    if wanted and not any(pattern(other) in wanted and value(other, "FOLDER") == folder for other in before):
        return f"no '{wanted[0]}' comes before it"
    if pattern(step) in SINCE_THE_FAULT and not any(map(is_fault, before)):
        return "its time is counted from the last fault, and none comes before it"
    return None


def never_started(scenario, before, step):
    started = starts(scenario, before)
    if not OF_LAUNCHERS.fullmatch(pattern(step)):
        return None
    for name in hosts_of(scenario, step):
        if name not in started:
            return f"no launcher has been started on {name} before: say 'start {name}' first, or name other hosts"
    return None


def has_ended(scenario, before, step):
    ended, started = ends(scenario, before), starts(scenario, before)
    if pattern(step).startswith("expect exit") or "agent of HOSTS" in pattern(step):
        for name in hosts_of(scenario, step):
            if name in ended:
                return f"the launcher of {name} has ended by line {ended[name].line}: say 'start {name}' before it"
    if OF_WORKERS.fullmatch(pattern(step)) and started and all(name in ended for name in started):
        return f"all launchers have ended by line {max(end.line for end in ended.values())}, and their workers with them"
    return None


def runs_already(scenario, before, step):
    if pattern(step) != "start HOSTS":
        return None
    started = starts(scenario, before)
    for name in hosts_of(scenario, step):
        since = before[before.index(started[name]) + 1:] if started.get(name) else before
        if name in started and not any(is_fault(other) or pattern(other).startswith("expect exit") for other in since):
            return f"the launcher of {name} runs already, and nothing has been done that could end it"
    return None


def said_already(_scenario, before, step):
    for other in reversed(before):
        if not (step.text.startswith("expect") and other.text.startswith("expect")):
            return None
        if other.text == step.text:
            return f"line {other.line} says the same"
    return None


def goes_back(_scenario, before, step):
    if pattern(step) not in RISING:
        return None
    for other in reversed(before):
        if is_fault(other) or other.text.startswith("expect exit"):
            return None
        if pattern(other) == pattern(step) and other.values[0] >= step.values[0]:
            return f"line {other.line} has awaited step {other.values[0]}, so this waits for nothing"
    return None


def too_many(scenario, _before, step):
    """Of what the job can have at most."""
    most, number = scenario.nodes[1], value(step, "NUMBER")
    world = most * scenario.workers_per_node
    if re.search(r"worker NUMBER$|is rank NUMBER", pattern(step)) and number >= world:
        return f"there is no rank {number}: the job has {world} workers at most, from rank 0 on"
    if pattern(step) == "await NUMBER workers" and number > world:
        return f"the job has {world} workers at most"
    if pattern(step).endswith("in a round of NUMBER") and not 1 <= number <= most:
        return f"a round has 1 to {most} nodes here"
    return None


def unknown_mark(_scenario, _before, step):
    return wrong_mark(step.values)


RULES = (unknown_host, head_is_missing, nothing_to_refer_to, never_started, has_ended, runs_already, said_already, goes_back,
         too_many, unknown_mark)


def wrong_mark(words):
    for word in words:
        for mark in re.findall(r"\{(\w+)\}", word if isinstance(word, str) else ""):
            if mark not in MARKS:
                return f"nothing stands for {{{mark}}}, but for {', '.join(f'{{{known}}}' for known in MARKS)}"
    return None


def check_head(scenario):
    """scenario.said: {what a line of the head is about: its line}."""
    known, launched = scenario.all_hosts(), starts(scenario, scenario.steps)
    for (key, name), line in scenario.said.items():
        names = {"daemon": [scenario.daemon], "start": scenario.resolve(scenario.start), "parent": scenario.parents,
                 "limit": [name], "clock": [name], "own": [name], "link": [name]}.get(key, [])
        for host in names:
            if host not in known:
                raise WrongLine(line, f"there is no host {host}, but {', '.join(known)}")
            if key in ("parent", "limit", "clock", "own") and host not in launched:
                raise WrongLine(line, f"no launcher is ever started on {host}, so this changes nothing")
        words = {"job": scenario.job, "daemon": scenario.daemon_options, "program": scenario.program,
                 "own": scenario.own.get(name, [])}.get(key, [])
        if why := wrong_mark(words):
            raise WrongLine(line, why)


def check(scenario):
    check_head(scenario)
    for place, step in enumerate(scenario.steps):
        for rule in RULES:
            if why := rule(scenario, scenario.steps[:place], step):
                raise WrongLine(step.line, f"{step.text}: {why}")
