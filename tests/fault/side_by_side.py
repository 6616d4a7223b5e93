"""Ten faults under muster and under PyTorch's torchrun, with the same worker on the same hosts: a table.

usage: side_by_side.py BIN_DIR [--torch PYTHON] [--only WORD,WORD]    with words of the cases' names
Three hosts, --nnodes=1:3, one worker each (step_worker.py), --max-restarts=3; of each launcher's own settings only the
last call is shortened to 3 s. torchrun is the PyTorch interpreter's torch.distributed.run with its c10d rendezvous.
"""

import contextlib
import json
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "system")]  # PYTHONSAFEPATH leaves out the first
from netns_lab import HasEnded, Lab, await_that  # noqa: E402
from interruption import refuse  # noqa: E402
from job_settings import forget_settings  # noqa: E402
from options_parser import OptionsParser  # noqa: E402
from program_folder import check_interpreter, check_registry, check_temporary_folder, checked  # noqa: E402
from run_processes import environment_of_process, send  # noqa: E402
from torch_probe import interpreter, torch_version  # noqa: E402

HOST_MARK = "MUSTER_LAB_HOST"
STEPS = 600
START_S, RECOVER_S, LEFT_S, TRIES = 180, 90, 5, 3
END_S = 120  # after the recovery; the longest job has 80 s of steps
CONF = "--rdzv-conf=join_timeout=120,last_call_timeout=3"


class Job:
    """One launcher's job on the lab's hosts."""

    def __init__(self, lab, launcher, python, worker_options):
        self.lab, self.launcher, self.python = lab, launcher, python
        self.worker = [os.path.join(HERE, "step_worker.py"), lab.folder, *worker_options]
        self.launches = {}

    def command(self):
        options = ["--nnodes=1:3", "--nproc-per-node=1", "--max-restarts=3", "--rdzv-id=job", "--rdzv-backend=c10d",
                   f"--rdzv-endpoint={self.lab.nodes[0].address}:{self.lab.port}", CONF]
        if self.launcher == "muster":
            return [f"{self.lab.bin}/muster", *options, f"--log-dir={self.lab.folder}/logs", *self.worker]
        return [self.python, "-m", "torch.distributed.run", *options, *self.worker]

    def start(self, *numbers):
        for number in numbers:
            node = self.lab.nodes[number - 1]
            self.launches[number] = self.lab.start(node, self.command(),
                                                   {HOST_MARK: node.name, "PYTHON_EXEC": "/usr/bin/python3",
                                                    "OMP_NUM_THREADS": "1"})

    def steps(self):
        """[(step, world, pid of rank 0)]; a line that is being written does not count yet."""
        with contextlib.suppress(FileNotFoundError), open(f"{self.lab.folder}/metrics.jsonl") as f:
            return [(line["step"], line["world"], line["pid"]) for line in map(json.loads, f.read().split("\n")[:-1])]
        return []

    def await_step(self, step, world=None, limit_s=START_S):
        def there():
            steps = self.steps()
            return steps and steps[-1][0] >= step and world in (None, steps[-1][1])
        await_that(lambda: there() or self.all_ended(), f"step {step}", limit_s)
        assert there(), "all launchers ended before:\n" + self.launches[1].output()[-1500:]

    def all_ended(self):
        return all(launch.process.poll() is not None for launch in self.launches.values())

    def processes(self, number=None):
        found = []
        there = self.lab.pids_on(self.lab.nodes[number - 1]) if number else []
        for pid in self.lab.all_pids():
            with contextlib.suppress(OSError):
                mark = f"{HOST_MARK}=n{number}".encode()
                if number is None or pid in there or mark in environment_of_process(pid):
                    found.append(pid)
        return found

    def worker_pid(self, number):
        """The worker on that host: it has a rank, and its parent is the launcher there."""
        found = []

        def find():
            for pid in self.processes(number):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as f:
                    parent = int(f.read().rsplit(")", 1)[1].split()[1])
                    if parent == self.launches[number].process.pid and any(
                            v.startswith(b"RANK=") for v in environment_of_process(pid)):
                        found.append(pid)
            return found
        await_that(find, "there is a worker")
        return found[0]

    def kill_host(self, number):
        while pids := self.processes(number):
            for pid in pids:
                send(pid, signal.SIGKILL)
            time.sleep(0.01)

    def exit_codes(self):
        return {n: launch.process.poll() for n, launch in sorted(self.launches.items())}


def worker_killed(job):
    if not send(job.worker_pid(3), signal.SIGKILL):
        raise HasEnded("the worker has ended before it could be killed")
    return [1, 2, 3]


def agent_killed(job):
    job.launches[3].kill(signal.SIGKILL)
    return [1, 2]


def agent_terminated(job):
    job.launches[3].kill(signal.SIGTERM)
    return [1, 2]


def node_cut_off(job):
    job.lab.nodes[2].cut_off()
    return [1, 2]


def node_joins(job):
    job.start(3)
    return [1, 2, 3]


def store_host_lost(job):
    job.kill_host(1)
    time.sleep(3)
    job.start(1)
    return [1, 2, 3]


def port_taken(job):
    """Until ten seconds after the launchers are started."""
    time.sleep(10)
    job.holder.kill()
    return [1, 2, 3]


def terminated_with_a_slow_save(job):
    job.launches[3].kill(signal.SIGTERM)
    return [1, 2]


def nothing(job):
    return []


# name, worker's options, what is done, steps before it (None: at once), hosts at the start, does it end by failing?
CASES = (
    ("worker killed", [], worker_killed, 60, (1, 2, 3), False),
    ("agent killed", [], agent_killed, 60, (1, 2, 3), False),
    ("agent terminated (SIGTERM)", [], agent_terminated, 60, (1, 2, 3), False),
    ("node cut off", [], node_cut_off, 60, (1, 2, 3), False),
    ("node joins", ["--steps=4000"], node_joins, 60, (1, 2), False),  # long enough for a slow start
    ("store's host lost, and back after 3 s", [], store_host_lost, 60, (1, 2, 3), False),
    ("endpoint's port taken for 10 s", [], port_taken, None, (1, 2, 3), False),
    ("SIGTERM, worker saves for 5 s", ["--save-s=5"], terminated_with_a_slow_save, 60, (1, 2, 3), False),
    ("worker fails at once (import error)", ["--no-such-option"], nothing, None, (1, 2, 3), True),
    ("worker fails once, with grandchildren", ["--grandchild", "--fail-at=60"], nothing, 50, (1, 2, 3), False),
)


def recovery(job, began, before, survivors, world):
    """(seconds to the next round's first step, steps done again); None if that never comes."""
    old = {pid for _, _, pid in job.steps()[:before]}

    def there():
        return any(w == world and pid not in old for _, w, pid in job.steps()[before:])
    try:
        await_that(lambda: there() or all(job.launches[n].process.poll() is not None for n in survivors), "", RECOVER_S)
    except AssertionError:
        return None, None
    if not there():
        return None, None
    took_s, steps = time.monotonic() - began, job.steps()
    place = next(i for i, (_, w, pid) in enumerate(steps) if w == world and pid not in old)
    return took_s, max(0, max((step for step, _, _ in steps[:place]), default=0) - steps[place][0] + 1)


def await_end(job, survivors):
    """False if one of them is still there."""
    with contextlib.suppress(AssertionError):
        await_that(lambda: all(job.launches[n].process.poll() is not None for n in survivors), "", END_S)
    return all(job.launches[n].process.poll() is not None for n in survivors)


def play(bin_dir, launcher, python, case):
    name, worker_options, act, after, hosts, fails = case
    with Lab(bin_dir, 3, own_names=True) as lab:
        assert lab.real, "needs a network for each host"
        job = Job(lab, launcher, python, [f"--steps={STEPS}", *worker_options])
        if act is port_taken:
            code = (f"import socket, time; s = socket.create_server(('{lab.nodes[0].address}', {lab.port})); "
                    "print('taken', flush=True); time.sleep(600)")
            holder = lab.start(lab.nodes[0], ["python3", "-c", code])
            holder.await_output("taken")
            job.holder = holder.process
        started = time.monotonic()
        job.start(*hosts)
        if after is not None:
            job.await_step(after, len(hosts))
        before, began = len(job.steps()), time.monotonic()
        survivors = act(job) or list(hosts)
        took_s = lost = None
        if not fails:
            took_s, lost = recovery(job, began, before, survivors, len(survivors))
        ended = await_end(job, survivors)
        if fails:
            took_s = time.monotonic() - started
        done = max((step for step, _, _ in job.steps()), default=0) >= STEPS
        codes = job.exit_codes()
        good = done and ended and all(codes[number] == 0 for number in survivors)
        time.sleep(LEFT_S)
        left = len([pid for pid in job.processes() if not runs_musterd(pid)])
        saved = os.path.exists(f"{lab.folder}/saved-2") if "--save-s=5" in worker_options else None
        return {"case": name, "launcher": launcher, "recovered": good, "fails": fails,
                "took_s": took_s, "steps_lost": lost, "left": left, "codes": codes, "saved": saved}


def runs_musterd(pid):
    """The hosted daemon leaves some seconds after its last job by itself."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip() == "musterd"
    except OSError:
        return True


def row(result):
    took = f"{result['took_s']:.1f} s" if result["took_s"] is not None else "never"
    what = "ends" if result["fails"] else "yes" if result["recovered"] else "no"
    if result["saved"] is not None:
        what += ", saved" if result["saved"] else ", not saved"
    codes = " ".join("runs" if code is None else str(code) for code in result["codes"].values())
    lost = "-" if result["steps_lost"] is None else result["steps_lost"]
    return f"| {result['case']} | {result['launcher']} | {what} | {took} | {lost} | {result['left']} | {codes} |"


def row_of(bin_dir, launcher, python, case):
    """A job that does not even start (on a busy machine torchrun's own time-outs strike) is tried again."""
    for _ in range(TRIES):
        try:
            return row(play(bin_dir, launcher, python, case))
        except AssertionError as fault:
            print(f"{case[0]}, {launcher}: {str(fault).splitlines()[0]}; tried again", file=sys.stderr, flush=True)
    return f"| {case[0]} | {launcher} | did not start in {TRIES} tries | | | | |"


def chosen(words):
    """The cases with one of these words in their names; all if there are no words."""
    for word in words:
        if not word or not any(word in case[0] for case in CASES):
            refuse(f"--only: no case has '{word}' in its name; there are: {'; '.join(case[0] for case in CASES)}")
    return [case for case in CASES if not words or any(word in case[0] for word in words)]


def read_options(arguments):
    """BIN_DIR is not looked at yet: it may have to be built."""
    parser = OptionsParser()
    parser.add_argument("bin")
    parser.add_argument("--torch", default=os.environ.get("MUSTER_TORCH_PYTHON", ""))
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    options.cases = chosen(options.only.split(",") if options.only else [])
    if not options.torch:
        refuse("--torch or MUSTER_TORCH_PYTHON has to name a Python with PyTorch; scripts/setup-torch makes one")
    options.torch = interpreter(options.torch)
    options.torch_version = torch_version(options.torch)
    return options


def run(options):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    print(f"torchrun of PyTorch {options.torch_version}; load {os.getloadavg()[0]:.0f}\n", flush=True)
    print("| Fault | Launcher | Recovered | To the next step | Steps done again | Processes left | Exit codes n1 n2 n3 |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for case in options.cases:
        for launcher in ("torchrun", "muster"):
            print(row_of(options.bin, launcher, options.torch, case), flush=True)


def main():
    check_interpreter()
    forget_settings()
    options = read_options(sys.argv[1:])
    check_temporary_folder()
    check_registry()
    options.bin = checked(options.bin)
    run(options)


if __name__ == "__main__":
    main()
