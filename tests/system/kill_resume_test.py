"""A worker killed at any moment costs no bit: the parameters at the end are those of an undisturbed run.

usage: kill_resume_test.py BIN_DIR TRAINER KILLS MAX_STEPS [--seed S]
Runs the trainer (ddp_mnist on two workers, fsdp_mlp on four) once in peace, then KILLS times with SIGKILL to a random
worker at a random moment, and compares the exported files byte by byte. A failure prints the seed that repeats it and
keeps the folder.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from jobs import forget_settings

LIMIT_S = 300
TRAINERS = {"ddp_mnist": (2, ["--epochs=2", "--checkpoint-every=50"]),
            "fsdp_mlp": (4, ["--epochs=2", "--checkpoint-every=20", "--hidden-dim=256"])}


def command(options, folder):
    workers, words = TRAINERS[options.trainer]
    return [os.path.join(options.bin, "muster"), "--standalone", f"--nproc-per-node={workers}", "--max-restarts=3",
            f"--log-dir={folder}/logs", os.path.join(options.bin, options.trainer), *words,
            f"--max-steps={options.max_steps}", f"--checkpoint-dir={folder}/ckpt",
            f"--export={folder}/final.safetensors"]


def workers_of(agent_pid):
    """pids of the agent's children that are workers, by their rank."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            if parent != agent_pid:
                continue
            with open(f"/proc/{entry}/environ", "rb") as f:
                variables = f.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        for variable in variables:
            if variable.startswith(b"RANK="):
                found[int(variable[5:])] = int(entry)
    return found


def digest(folder):
    with open(os.path.join(folder, "final.safetensors"), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def run(options, folder, kill_after_s=None, rank=0):
    """Returns how long it took and whether a kill was delivered."""
    began = time.monotonic()
    with open(os.path.join(folder, "output.txt"), "wb") as output:
        agent = subprocess.Popen(command(options, folder), stdout=output, stderr=subprocess.STDOUT)
        killed = False
        if kill_after_s is not None:
            try:
                agent.wait(kill_after_s)  # the random moment itself, not a wait for something
            except subprocess.TimeoutExpired:
                victim = workers_of(agent.pid).get(rank)
                if victim:
                    os.kill(victim, signal.SIGKILL)
                    killed = True
        code = agent.wait(LIMIT_S)
    if code != 0:
        with open(os.path.join(folder, "output.txt")) as f:
            raise AssertionError(f"exit code {code}:\n{f.read()}")
    return time.monotonic() - began, killed


def main():
    forget_settings()
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("trainer", choices=TRAINERS)
    parser.add_argument("kills", type=int)
    parser.add_argument("max_steps", type=int)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    dice = random.Random(options.seed)

    base = tempfile.mkdtemp(prefix="muster-kill-resume-")
    calm = os.path.join(base, "calm")
    os.mkdir(calm)
    duration_s, _ = run(options, calm)
    expected = digest(calm)

    delivered = 0
    for attempt in range(options.kills):
        folder = os.path.join(base, f"kill-{attempt}")
        os.mkdir(folder)
        moment_s, rank = dice.uniform(0, duration_s), dice.randrange(TRAINERS[options.trainer][0])
        try:
            _, killed = run(options, folder, moment_s, rank)
            got = digest(folder)
            assert got == expected, f"parameters differ: {got} is not {expected}"
        except AssertionError as fault:
            sys.exit(f"kill {attempt} of rank {rank} after {moment_s:.3f} s: {fault}\nkept in {folder}; again: "
                     f"{' '.join(sys.argv[:5])} --seed {options.seed}")
        delivered += killed
        shutil.rmtree(folder)
    shutil.rmtree(base)
    assert delivered >= options.kills // 3, f"only {delivered} of {options.kills} kills met a living worker"
    print(json.dumps({"kills": options.kills, "delivered": delivered, "calm_run_s": round(duration_s, 2),
                      "sha256": expected, "seed": options.seed}))


if __name__ == "__main__":
    main()
