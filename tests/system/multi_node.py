"""What the tests of several nodes have in common: the options of a job, its workers, what they left."""

import glob
import json
import os
import signal
import sys

from netns_lab import Lab  # it finds tests/support
from job_settings import forget_settings

QUICK = ("--rdzv-conf=join_timeout=60,last_call_timeout=500ms,closed_grace=200ms,settle_window=200ms,"
         "first_step_timeout=0")  # the workers of these tests tell of no step
# Bounds of time are for the real thing; sanitizers cost a multiple.
PATIENCE = 5 if os.environ.get("MUSTER_SANITIZER") else 1
CHILD = "muster_test_chi"  # as the kernel shortens it


def options(lab, nodes, *more, host=0):
    return [f"--nnodes={nodes}", "--rdzv-id=job", f"--rdzv-endpoint={lab.nodes[host].address}:{lab.port}", QUICK, *more]


def environment_of(path):
    with open(path, "rb") as f:
        return dict(entry.decode().split("=", 1) for entry in f.read().split(b"\0") if entry)


def say_environment(lab):
    return lab.program("muster_test_child", "env", f"{lab.folder}/env-{{rank}}")


def said_environments(lab, ranks):
    return [environment_of(f"{lab.folder}/env-{rank}") for rank in range(ranks)]


def statuses(lab):
    found = []
    for path in sorted(glob.glob(f"{glob.escape(lab.folder)}/logs/job/*/status.json")):
        with open(path) as f:
            found.append(json.load(f))
    return found


def until_marked(lab, *first):
    """Workers that run until the test puts a file down, and then end well; `first` is what they do before."""
    before = [*first, "then"] if first else []
    return (lab.program("muster_test_child", *before, "await", f"{lab.folder}/go"),
            lambda: open(f"{lab.folder}/go", "w").close())


def real_network_only(lab):
    if not lab.real:
        print("left out: needs a network for each host")
    return lab.real


def main(scenarios):
    bin_dir, scenario = sys.argv[1:3]
    forget_settings()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the lab is taken down
    with Lab(bin_dir) as lab:
        scenarios["scenario_" + scenario](lab)
