"""Every sample is used exactly once in each epoch, whatever is killed and however the world changes its size.

usage: audit_test.py BIN_DIR [--seed S]
One run of ddp_mnist is carried on by worlds of different sizes: workers and whole jobs are killed at random moments.
Then muster_audit reads what each rank has recorded. A failure prints the seed and keeps the folder.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from jobs import forget_settings
from kill_resume_test import workers_of

LIMIT_S = 300
EPOCHS = 1 if os.environ.get("MUSTER_SANITIZER") else 2  # half the way at their pace
WORLDS = (2, 3, 1, 4, 2)


def await_line(path, agent, count):
    """Until the metrics have so many lines, or the job is over."""
    deadline = time.monotonic() + LIMIT_S
    while agent.poll() is None and time.monotonic() < deadline:
        try:
            with open(path) as f:
                if sum(1 for _ in f) >= count:
                    return
        except FileNotFoundError:
            pass
        time.sleep(0.02)


def lines_of(path):
    try:
        with open(path) as f:
            return sum(1 for _ in f)
    except FileNotFoundError:
        return 0


def run_leg(options, folder, world, dice, is_last):
    """One world. All but the last are killed: a worker first (the job starts anew), then the whole job."""
    metrics = f"{folder}/metrics.jsonl"
    command = [os.path.join(options.bin, "muster"), "--standalone", f"--nproc-per-node={world}", "--max-restarts=3",
               f"--log-dir={folder}/logs-{time.monotonic_ns()}", os.path.join(options.bin, "ddp_mnist"),
               f"--epochs={EPOCHS}", f"--checkpoint-dir={folder}/ckpt", "--checkpoint-every=25",
               f"--audit-dir={folder}/audit", f"--metrics-file={metrics}", "--quiet", *options.arguments]
    with open(f"{folder}/output.txt", "ab") as output:
        agent = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT,
                                 env={**os.environ, "OMP_NUM_THREADS": "1"})
        await_line(metrics, agent, lines_of(metrics) + dice.randrange(20, 80))
        victim = workers_of(agent.pid).get(dice.randrange(world))
        if victim:
            os.kill(victim, signal.SIGKILL)
        if not is_last:
            await_line(metrics, agent, lines_of(metrics) + dice.randrange(20, 80))
            agent.send_signal(signal.SIGKILL)
        code = agent.wait(LIMIT_S)
    if is_last and code != 0:
        with open(f"{folder}/output.txt") as f:
            raise AssertionError(f"exit code {code}:\n{f.read()}")


def main():
    forget_settings()
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("arguments", nargs="*", help="more for the trainer, after --")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    folder = tempfile.mkdtemp(prefix="muster-audit-")
    try:
        for number, world in enumerate(WORLDS):
            run_leg(options, folder, world, dice, number + 1 == len(WORLDS))
        check = [os.path.join(options.bin, "muster_audit"), f"{folder}/audit", f"--epochs={EPOCHS}"]
        done = subprocess.run(check, capture_output=True, text=True)
        print(done.stdout, done.stderr)
        assert done.returncode == 0, "the audit found faults"
        # And the checker can fail: without one rank's record the samples of a rank are missing.
        newest = sorted(os.listdir(f"{folder}/audit"))[-1]
        os.remove(f"{folder}/audit/{newest}")
        assert subprocess.run(check, capture_output=True).returncode == 1, "a missing file was not noticed"
    except (AssertionError, subprocess.TimeoutExpired) as fault:
        sys.exit(f"{fault}\nkept in {folder}; again: {sys.argv[0]} {options.bin} --seed {options.seed}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
