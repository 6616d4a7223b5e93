"""A scenario while it runs: its hosts, launchers and daemon, and what can be seen of them."""

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))
from netns_lab import Lab, await_that  # noqa: E402
from run_processes import environment_of_process  # noqa: E402
from host_setup import HostSetup  # noqa: E402
from interruption import held_back  # noqa: E402
import proof_leftovers  # noqa: E402
from watch import Watch  # noqa: E402

PATIENCE_S = float(os.environ.get("MUSTER_FAULT_PATIENCE_S", "120"))
QUICK = ("join_timeout=60,last_call_timeout=1s,closed_grace=200ms,broken_grace=1s,settle_window=200ms,"
         "resume_window=60s")
SDK = os.path.join(HERE, "..", "..", "worker_sdk", "python")
HOST_MARK = "MUSTER_LAB_HOST"


class FaultRun:
    """Context manager around one play of a scenario."""

    def __init__(self, scenario, bin_dir, seed):
        self.scenario, self.bin, self.seed = scenario, os.path.abspath(bin_dir), seed
        self.dice = random.Random(seed)
        self.launches = {}  # host: the newest launcher there
        self.all_launches, self.daemons, self.helpers = [], [], []
        self.notes = []  # what chance decided
        self.down = {}  # host: why it does not count as healthy now
        self.health = []  # (time, hosts that do not count as healthy from then on)
        self.starts = []  # (time, host)
        self.faults = []  # (time, sentence): what was done to the job
        self.start_s = 0.0  # what the program's undisturbed start took, where that was measured
        self.said = []  # (time, sentence): the same, with what mends it
        self.chosen = []  # (time, what, host, rank): whom chance chose
        self.remembered, self.stopped_workers = [], []
        self.damaged_checkpoints = self.steps_repeated = self.samples_checked = 0
        self.python = os.environ.get("PYTHON_EXEC", "/usr/bin/python3")
        self.ended_at = None

    def __enter__(self):
        # Every host can be the daemon's or run launchers; the lab knows them by their place.
        self.lab = Lab(self.bin, self.scenario.hosts, own_names=True)
        with contextlib.ExitStack() as unless_ready:
            self.lab.__enter__()
            # What is to be shown and kept is decided by whoever plays.
            unless_ready.callback(self.lab.__exit__, None, None, None)
            self.hosts = {node.name: node for node in self.lab.nodes}
            self.before = proof_leftovers.found_on(self.lab)
            self.watch = Watch()
            unless_ready.callback(self.watch.close)
            self.watch.add(self.metrics_path)
            self.temporary = f"{self.folder}/tmp"
            os.mkdir(self.temporary)
            self.use = proof_leftovers.UseSampler(self.pids_to_watch)
            unless_ready.callback(self.use.close)
            self.setup = HostSetup(self)
            self._at_end = unless_ready.pop_all()
        return self

    def keep(self):
        self.lab.registry.keep(self.folder)

    def __exit__(self, kind, value, traceback):
        with held_back():
            self._at_end.close()
            self.setup.remove_clock_memory()

    # What it starts

    @property
    def folder(self):
        return self.lab.folder

    @property
    def metrics_path(self):
        return f"{self.folder}/metrics.jsonl"

    def filled(self, words):
        return [word.replace("{folder}", self.folder).replace("{seed}", str(self.seed)) for word in words]

    def program(self):
        name, *rest = self.scenario.program
        rest = self.filled(rest)
        if name == "child":
            return [f"{self.bin}/muster_test_child", *rest]
        own = [f"--checkpoint-dir={self.folder}/checkpoint", f"--metrics-file={self.metrics_path}",
               f"--export={self.folder}/final.safetensors"]
        if name == "python":
            return [os.path.join(HERE, rest[0]), *rest[1:], *own]
        return [f"{self.bin}/{name}", *rest, *own, *self.setup.audit_options(name)]

    def options(self):
        endpoint = self.hosts[self.scenario.daemon or "n1"]
        return ["--rdzv-id=job", f"--rdzv-endpoint={endpoint.address}:{self.lab.port}", f"--rdzv-conf={QUICK}",
                "--stop-grace=10", *self.filled(self.scenario.job)]

    def start(self, name):
        """A launcher on that host."""
        # PyTorch's compiler makes its folder in TMPDIR and leaves it there on purpose; what is left is to be ours.
        environment = {HOST_MARK: name, "TMPDIR": self.temporary, "OMP_NUM_THREADS": "1", "PYTHON_EXEC": self.python,
                       "PYTHONPATH": SDK, "TORCHINDUCTOR_CACHE_DIR": f"{self.folder}/torch"}
        options = [*self.options(), *self.filled(self.scenario.own.get(name, []))]
        launch = self.lab.launch(self.hosts[name], options, self.program(), environment,
                                 within=self.setup.within(name))
        self.watch.add(launch.output_path)
        self.launches[name] = launch
        self.all_launches.append(launch)
        self.starts.append((time.monotonic(), name))
        self.mark_up(name)

    def start_daemon(self):
        name = self.scenario.daemon
        options = self.filled(self.scenario.daemon_options)
        words = [f"{self.bin}/musterd", f"--listen={self.hosts[name].address}:{self.lab.port}", *options]
        daemon = self.lab.start(self.hosts[name], words, {HOST_MARK: name, "TMPDIR": self.temporary})
        daemon.await_output("listening on")
        self.daemons.append(daemon)

    # What can be seen

    def note(self, text):
        self.notes.append(text)

    def transcript(self):
        began = self.starts[0][0] if self.starts else 0
        return "\n".join(f"{when - began:7.2f} s  {text}" for when, text in self.said)

    def mark_down(self, name, why):
        self.down[name] = why
        self.health.append((time.monotonic(), frozenset(self.down)))

    def mark_up(self, name):
        self.down.pop(name, None)
        self.health.append((time.monotonic(), frozenset(self.down)))

    def lines(self, name):
        """(time, line) of the newest launcher on that host."""
        return self.watch.lines(self.launches[name].output_path)

    def shows(self, name, text):
        return any(text in line for _, line in self.lines(name))

    def round_lines(self, name):
        return [line for _, line in self.lines(name) if re.match(r"muster: round \d+: ", line)]

    def metrics(self):
        return [(when, json.loads(line)) for when, line in self.watch.lines(self.metrics_path)]

    def step(self):
        steps = [line for _, line in self.watch.lines(self.metrics_path) if '"event":"step"' in line]
        return json.loads(steps[-1])["step"] if steps else 0

    def succeeded(self):
        """Some launcher ended well: then the whole job did."""
        return any(launch.process.poll() == 0 for launch in self.launches.values())

    def note_processes(self):
        """What still runs and where it stands, for somebody who wants to know why a job does not end."""
        with open(os.path.join(self.folder, "processes.txt"), "w", encoding="utf-8", errors="replace") as out:
            for pid in self.lab.all_pids():
                with contextlib.suppress(OSError):
                    for name in ("cmdline", "status", "wchan"):
                        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
                            out.write(file.read().replace("\0", " ") + "\n")
                out.flush()
                if gdb := shutil.which("gdb"):
                    subprocess.run([gdb, "-p", str(pid), "-batch", "-ex", "thread apply all bt 25"], stdout=out,
                                   stderr=subprocess.STDOUT, check=False)

    def pids_to_watch(self):
        return [launch.process.pid for launch in [*self.all_launches, *self.daemons] if launch.process.poll() is None]

    def all_ended(self):
        return all(launch.process.poll() is not None for launch in self.launches.values())

    def await_that(self, condition, what, limit_s=PATIENCE_S):
        """Sooner given up when no launcher is left to make it true."""
        def settled():
            return condition() or (self.launches and self.all_ended())
        await_that(settled, what, limit_s)
        if not condition():
            time.sleep(0.1)  # the watch reads what the last one wrote
            assert condition(), f"all launchers ended without this: {what}"

    # Processes

    def processes(self, name=None):
        """{pid: environment} of what runs on that host, or on all. What the scenario itself has there is no host's."""
        found = {}
        helpers = {launch.process.pid for launch in self.helpers}
        there = self.lab.pids_on(self.hosts[name]) if name else []
        for pid in self.lab.all_pids():
            variables = environment_of(pid)
            if name is None or variables.get(HOST_MARK) == name or (pid in there and pid not in helpers):
                found[pid] = variables
        return found

    def workers(self):
        """{rank: pid}: children of the agents that have a rank."""
        agents = {launch.process.pid for launch in self.launches.values()}
        found = {}
        for pid, variables in self.processes().items():
            if "RANK" in variables and parent_of(pid) in agents:
                found[int(variables["RANK"])] = pid
        return found

    def daemon_pids(self):
        return self.lab.pids("musterd")

    def statuses(self):
        """{host: status.json} of those that have written one."""
        found = {}
        for name in self.scenario.all_hosts():
            try:
                with open(f"{self.folder}/logs/job/{name}/status.json", encoding="utf-8") as f:
                    found[name] = json.load(f)
            except FileNotFoundError:
                continue
        return found


def environment_of(pid):
    """Of one that has just ended, or may not be asked, nothing is known."""
    try:
        return dict(v.decode(errors="replace").partition("=")[::2] for v in environment_of_process(pid))
    except OSError:
        return {}


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()
