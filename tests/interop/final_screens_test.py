"""The last screens that docs/reports.md shows, made anew and compared with the page.

usage: final_screens_test.py BIN_DIR PYTHON SCENARIO    with SCENARIO one of the functions named scenario_* below
       final_screens_test.py BIN_DIR PYTHON write       to print all of them as the page has them

PYTHON is an interpreter that has PyTorch. Numbers, times, paths and names of hosts may differ; all else may not.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../docs/reports.md")

TRAIN = """\
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
layer = torch.nn.Linear(4, 2)
batch = torch.ones(8, 4 if dist.get_rank() == 0 else 3)
layer(batch)
time.sleep(600)
"""
HANG = """\
import os, time, torch.distributed as dist
print("ready", flush=True)
if os.environ["RANK"] == "1":
    time.sleep(600)
dist.init_process_group("gloo")
"""
EAT = """\
import os, sys, time
if os.environ["RANK"] == "1":
    print("loading shard 7", file=sys.stderr)
    data = bytearray(400 << 20)
time.sleep(600)
"""
STUBBORN = """\
import os, signal, time
if os.environ["RANK"] == "1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


class Job:
    def __init__(self, bin_dir, python, folder):
        self.bin, self.python, self.folder = bin_dir, python, folder

    def start(self, name, script, options=(), within=()):
        path = os.path.join(self.folder, name + ".py")
        with open(path, "w") as f:
            f.write(script)
        command = [*within, f"{self.bin}/muster", "--nproc-per-node=2", f"--rdzv-id={name}", "--node-id=n1",
                   f"--log-dir={self.folder}/logs", *options, path]
        return subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, PYTHON_EXEC=self.python))

    def screen(self, process):
        _, err = process.communicate(timeout=120)
        report = re.search(r"^muster: job \w+ (FAILED|ended|preempted|stopped).*\Z", err, re.MULTILINE | re.DOTALL)
        assert report, err
        return report.group(0).rstrip("\n")

    def ready(self, process, times):
        for _ in range(times):
            assert process.stdout.readline() == "ready\n"


def scenario_I2_a_script_that_fails_in_rank_1(job):
    return job.screen(job.start("train", TRAIN))


def scenario_I1_a_worker_that_is_out_of_memory(job):
    cgroup = "/sys/fs/cgroup/memory" + own_memory_cgroup() + f"/muster-screen-{os.getpid()}"
    limit = "memory.limit_in_bytes"
    if not os.path.isdir(os.path.dirname(cgroup)):
        cgroup, limit = f"/sys/fs/cgroup/muster-screen-{os.getpid()}", "memory.max"
    try:
        os.mkdir(cgroup)
        with open(f"{cgroup}/{limit}", "w") as f:
            f.write(str(200 << 20))
    except OSError as error:
        print(f"left out: no memory cgroup can be made here ({error})")
        return None
    try:
        within = ["/bin/sh", "-c", f"echo $$ > {cgroup}/cgroup.procs && exec \"$@\"", "sh"]
        return job.screen(job.start("eat", EAT, within=within))
    finally:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                os.rmdir(cgroup)
                break
            except OSError:
                time.sleep(0.05)


def own_memory_cgroup():
    with open("/proc/self/cgroup") as f:
        for line in f:
            if ":memory:" in line:
                return line.strip().split(":", 2)[2].rstrip("/")
    return ""


def scenario_a_job_that_hangs_and_is_stopped(job):
    process = job.start("hang", HANG, ["--rdzv-conf=stall_after=2s"])
    job.ready(process, 2)
    lines = []
    while "does not get on" not in "".join(lines[-1:]):
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    process.send_signal(signal.SIGTERM)
    return job.screen(process)


def scenario_a_worker_that_ignores_SIGTERM(job):
    process = job.start("stubborn", STUBBORN, ["--stop-grace=2s"])
    job.ready(process, 2)
    process.send_signal(signal.SIGTERM)
    return job.screen(process)


def shape(screen):
    """What of a screen is the same on each machine and at each time."""
    text = re.sub(r"(?<![\w.])/[^\s\"';,)]*/(?=[\w.-]+)", "PATH/", screen)
    text = re.sub(r"\b\d\d:\d\d:\d\d\.\d{3}\b", "TIME", text)
    text = re.sub(r" (?:within (?:under )?[\d.]+ m?s|at once)\b", " SOON", text)
    text = re.sub(r"\bon n1( \([^)]*\))?", "on HOST", text)
    text = re.sub(r"\b[\d.]+ (?:ms|s|min)(?: [\d.]+ s)?(?=\W|$)", "DURATION", text)
    text = re.sub(r"(?:under )+DURATION", "DURATION", text)
    text = re.sub(r"\bpid \d+|--pid \d+", "PID", text)
    # What rank 0 waits for is said as soon as it waits long enough.
    text = re.sub(r"did not get on .*(rank 1 \(PID\) has not connected) .*", r"did not get on \1", text)
    return re.sub(r"\b\d+ MiB", "MEMORY", text)


def pictured(scenario):
    """The block of the page that stands under the scenario's name."""
    with open(PAGE) as f:
        page = f.read()
    return re.search(rf"<!-- {scenario} -->\n```\n(.*?)\n```", page, re.DOTALL).group(1)


def main():
    bin_dir, python, wanted = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
    for name, function in list(globals().items()):
        if not name.startswith("scenario_") or wanted not in ("write", name.removeprefix("scenario_")):
            continue
        with tempfile.TemporaryDirectory(prefix="muster-screen-") as folder:
            screen = function(Job(bin_dir, python, folder))
        if screen is None:
            continue
        if wanted == "write":
            print(f"<!-- {name.removeprefix('scenario_')} -->\n```\n{screen}\n```\n")
            continue
        expected = pictured(wanted)
        if shape(screen) != shape(expected):
            sys.exit(f"docs/reports.md shows\n{expected}\n\nmuster now prints\n{screen}\n\nas shapes\n{shape(expected)}\n\n"
                     f"{shape(screen)}")
        first = screen.split("\n")[0]
        assert ";" in first and screen.count("\n") < 30, screen


main()
