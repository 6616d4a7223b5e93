"""Reads a scenario: a text file whose name is a sentence.

    # Prose: what is shown, and why it matters.
    hosts: 3                              how many (n1, n2, ...)
    daemon: n3 --heartbeat-timeout=2s     a standing musterd there; left out: the launchers host one
    start: n1,n2                          where the job is launched at once; left out: everywhere but on the daemon's
    job: --nnodes=1:3 --max-restarts=3    options of each launcher
    program: ddp_mnist --max-steps=300    ddp_mnist, child (tests/support/child.cpp) or python SCRIPT
    disk: checkpoint 8M                   that folder is a disk of its own, of this size
    limit: n2 descriptors=64              what the launcher of that host may use: descriptors, processes, memory
    clock: n2 +15m                        that host's clock is off
    secret: right 7f3a9c                  a file {folder}/right that holds this, for the user alone
    own: n2 --rdzv-conf=token_file=...    options of that host's launcher alone
    parent: n2                            its launcher is started by a shell, which waits for it
    link: n2 20ms 2M                      all it sends and receives comes so much later, at so many bytes a second
    runs: always                          in each run of the tests, and not only in --full ones

    await step 40
    send SIGKILL to worker 1
    expect exit 0 of all

An empty line ends the head. Each of its lines stands there once; those of a disk, a secret or a host once for each. What
is clearly a mistake is refused with its line (scenario_checks.py). What follows is done in this order, a sentence a line (sentences.py; `scripts/chaos
sentences` lists them). Words with spaces stand in double quotes; {folder} is the run's own folder.
"""

import os
import re
import shlex
from dataclasses import dataclass, field

import scenario_checks
from sentences import FOLDERS, host, hosts, number, seconds, shift, understand

MAX_HOSTS = 16
PROGRAMS = ("ddp_mnist", "fsdp_mlp", "child", "python")
LIMITS = ("descriptors", "processes", "memory")
SIZE = re.compile(r"[1-9]\d*[KM]")


class ScenarioError(Exception):
    """What is wrong with a scenario file: "path:line: what"."""


@dataclass(frozen=True)
class Step:
    line: int
    text: str
    sentence: object
    values: list


@dataclass
class Scenario:
    path: str
    hosts: int = 2
    daemon: str = ""
    daemon_options: list = field(default_factory=list)
    start: tuple = ("all",)
    job: list = field(default_factory=list)
    program: list = field(default_factory=list)
    disks: dict = field(default_factory=dict)
    limits: dict = field(default_factory=dict)
    clocks: dict = field(default_factory=dict)
    links: dict = field(default_factory=dict)
    parents: tuple = ()
    secrets: dict = field(default_factory=dict)
    own: dict = field(default_factory=dict)
    always: bool = False
    said: dict = field(default_factory=dict)  # (key of a head line, what it is about): its line
    steps: list = field(default_factory=list)

    @property
    def name(self):
        return os.path.basename(self.path).removesuffix(".scenario")

    @property
    def needs_network(self):
        return bool(self.links) or any(step.sentence.needs_network for step in self.steps)

    def job_hosts(self):
        """Where launchers may run: everywhere but on the standing daemon's host."""
        return [name for name in self.all_hosts() if name != self.daemon]

    def all_hosts(self):
        return [f"n{n}" for n in range(1, self.hosts + 1)]

    def resolve(self, names):
        return self.job_hosts() if names == ("all",) else list(names)

    def option(self, name, default):
        """The last value: "--name=VALUE" or "--name VALUE"."""
        values = [word.split("=", 1)[1] for word in self.job if word.startswith(f"{name}=")]
        places = [place for place, word in enumerate(self.job[:-1]) if word == name]
        if places and not any(word.startswith(f"{name}=") for word in self.job[places[-1]:]):
            return self.job[places[-1] + 1]
        return values[-1] if values else default

    @property
    def nodes(self):
        """(fewest, most)"""
        low, _, high = self.option("--nnodes", "1").partition(":")
        return int(low), int(high or low)

    @property
    def workers_per_node(self):
        """Where no GPUs are, "auto" and "cpu" are one for each core that this process may use."""
        word = self.option("--nproc-per-node", "1")
        return len(os.sched_getaffinity(0)) if word in ("auto", "cpu") else int(word)

    @property
    def is_elastic(self):
        return self.nodes[0] != self.nodes[1]

    @property
    def is_training(self):
        """It writes a metrics file, keeps checkpoints, and goes on from them."""
        return self.program[0] in ("ddp_mnist", "fsdp_mlp", "python")


def two(words):
    if len(words) != 2:
        raise IndexError
    return words


def _hosts(scenario, words):
    scenario.hosts = number(*words)
    if not 1 <= scenario.hosts <= MAX_HOSTS:
        raise ValueError(f"1 to {MAX_HOSTS} hosts are possible")


def _daemon(scenario, words):
    scenario.daemon, scenario.daemon_options = host(words[0]), words[1:]


def _start(scenario, words):
    scenario.start = () if words == ["none"] else hosts(*words)


def _program(scenario, words):
    if words[0] not in PROGRAMS:
        raise ValueError(f"a program is one of {', '.join(PROGRAMS)}")
    if words[0] == "python" and not os.path.isfile(os.path.join(os.path.dirname(os.path.abspath(__file__)), words[1])):
        raise ValueError(f"there is no script {words[1]} in tests/fault")
    scenario.program = words


def _disk(scenario, words):
    folder, size = two(words)
    if folder not in FOLDERS or not SIZE.fullmatch(size):
        raise ValueError(f"expected one of {', '.join(FOLDERS)} and a size as in 8M")
    scenario.disks[folder] = size


def _limit(scenario, words):
    own = scenario.limits.setdefault(host(words[0]), {})
    for word in words[1:]:
        name, _, value = word.partition("=")
        if name not in LIMITS or not re.fullmatch(r"[1-9]\d*[KM]?", value):
            raise ValueError(f"'{word}': expected one of {', '.join(LIMITS)}, and its value as in descriptors=64")
        if name in own:
            raise ValueError(f"{name} is limited twice")
        own[name] = value
    if not own:
        raise IndexError


def _clock(scenario, words):
    name, change = two(words)
    scenario.clocks[host(name)] = shift(change)


def _link(scenario, words):
    if len(words) != 3 or not SIZE.fullmatch(words[2]):
        raise ValueError("expected a host, a time and bytes a second, as in n2 20ms 2M")
    scenario.links[host(words[0])] = (seconds(words[1]), words[2])


def _secret(scenario, words):
    name, text = two(words)
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"'{name}' is no name of a file")
    scenario.secrets[name] = text


def _own(scenario, words):
    if len(words) < 2:
        raise IndexError
    scenario.own.setdefault(host(words[0]), []).extend(words[1:])


def _job(scenario, words):
    if not words:
        raise IndexError
    scenario.job = words


def _parent(scenario, words):
    scenario.parents = hosts(*words)


def _runs(scenario, words):
    if words != ["always"]:
        raise ValueError("only 'always' can be said")
    scenario.always = True


HEAD = {
    "hosts": _hosts, "daemon": _daemon, "start": _start, "program": _program, "disk": _disk, "limit": _limit,
    "clock": _clock, "link": _link, "parent": _parent, "secret": _secret, "own": _own,
    "runs": _runs, "job": _job,
}


EACH = ("disk", "limit", "clock", "link", "secret", "own")  # those of which there may be one for each name


def _read_head_line(scenario, place, line):
    key, colon, rest = line.partition(":")
    if not colon or key not in HEAD:
        raise ValueError(f"'{line}' is no line of the head: {', '.join(HEAD)}, each with a colon")
    words = shlex.split(rest)
    try:
        about = (key, words[0] if key in EACH else "")
        first = scenario.said.setdefault(about, place)
        if first != place:
            raise ValueError(f"line {first} is a '{f'{key}: {about[1]}'.strip()}' line already: leave one of the two, with "
                             "all that is to be said")
        HEAD[key](scenario, words)
    except (TypeError, IndexError):
        raise ValueError(f"'{line}' has too few words or too many") from None


def _check_job(scenario):
    words = {name: scenario.option(name, "1") for name in ("--nnodes", "--nproc-per-node")}
    if not re.fullmatch(r"[1-9]\d*(:[1-9]\d*)?", words["--nnodes"]):
        raise ValueError(f"--nnodes is N or MIN:MAX, not {words['--nnodes']}")
    if scenario.nodes[0] > scenario.nodes[1]:
        raise ValueError(f"--nnodes is MIN:MAX, and {words['--nnodes']} has more at least than at most")
    if not re.fullmatch(r"[1-9]\d*|auto|cpu", words["--nproc-per-node"]):
        raise ValueError(f"--nproc-per-node is a number, auto or cpu, not {words['--nproc-per-node']}")
    if len(scenario.job_hosts()) > 1 and not scenario.option("--nnodes", ""):
        raise ValueError("no --nnodes in a 'job:' line: each host would run a job of its own")


def _check_whole(scenario):
    if not scenario.program:
        raise ValueError("no 'program:' line")
    if not scenario.steps:
        raise ValueError("no sentence; an empty line ends the head")
    try:
        _check_job(scenario)
    except ValueError as error:
        raise scenario_checks.WrongLine(scenario.said.get(("job", ""), scenario.steps[0].line), str(error)) from None
    scenario_checks.check(scenario)


def _read_sentence(place, line):
    key = line.partition(":")[0]
    if key in HEAD and ":" in line:
        raise ValueError(f"a '{key}:' line belongs above the empty line that ends the head")
    return Step(place, line, *understand(shlex.split(line)))


def parse(path, text):
    """Raises ScenarioError with the path and the line."""
    scenario, in_head, number_ = Scenario(path), True, 0
    try:
        for number_, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            if line.startswith("#"):
                continue
            if not line:
                in_head = in_head and not scenario.program
            elif in_head:
                _read_head_line(scenario, number_, line)
            else:
                scenario.steps.append(_read_sentence(number_, line))
        _check_whole(scenario)
    except ValueError as error:
        raise ScenarioError(f"{path}:{getattr(error, 'line', number_)}: {error}") from None
    return scenario


def read(path):
    import actions  # noqa: F401  they make the sentences known
    with open(path, encoding="utf-8") as f:
        return parse(path, f.read())
