"""Trains for some minutes on four hosts, breaks something every few seconds, and proves that nothing was lost.

usage: soak.py BIN_DIR --minutes M [--seed S] [--every SECONDS] [--torch PYTHON] [--only PROGRAM] [--keep]
One job after the other, the trainers and a PyTorch script in turn, each with --nnodes=1:4 and a standing daemon on a
fifth host. Chance (by the seed) decides what is done, to whom and when; it is written down in the words of scenarios.
Exit code 0 only if every proof held; the last line says so.
"""

import argparse
import os
import random
import signal
import sys
import time
import traceback

import proof_leftovers
import proof_progress
import proof_samples
import proof_state
import proof_truth
import scenario_text
from fault_run import FaultRun
from injector import Injector
from soak_table import Totals, table

JOB = "--nnodes=1:4 --max-restarts=100000 --stop-grace=5"
HEAD = """hosts: 5
disk: checkpoint 64M
daemon: n5 --heartbeat-timeout=3s --state-dir={{folder}}/state
job: {job}
program: {program}

wait 0s
"""
PROGRAMS = {
    "ddp_mnist": "ddp_mnist --epochs=4 --checkpoint-every=20 --quiet",
    "fsdp_mlp": "fsdp_mlp --hidden-dim=64 --epochs=5 --checkpoint-every=20 --quiet",
    "torch": "python torch_elastic.py --steps=600 --checkpoint-every=20",
}
JOB_LIMIT_S = 900
STARTS_A_FAULT = 2


def programs(bin_dir, torch):
    found = [name for name in ("ddp_mnist", "fsdp_mlp") if os.path.exists(f"{bin_dir}/{name}")]
    return found + (["torch"] if torch else [])


def first_step_s(run):
    """From the start to the first step: what a restart costs at least, whoever launches."""
    began = time.monotonic()
    run.await_that(lambda: run.step() > 0, "the first step is done", 300)
    return time.monotonic() - began


def watch_over(run, injector, until):
    """Faults until the job is done or the time is over; launchers that gave up are started again."""
    deadline = time.monotonic() + JOB_LIMIT_S
    while not run.succeeded():
        now = time.monotonic()
        assert now < deadline, f"the job is not done after {JOB_LIMIT_S} s; at step {run.step()}"
        if now < until:
            injector.step(now)
        else:
            injector.calm_down()
        injector.restart_ended()
        time.sleep(0.02)
    injector.calm_down()


def end_job(run, injector):
    """Those that are still there have to hear of the end by themselves."""
    injector.calm_down()
    for name, launch in run.launches.items():
        try:
            launch.process.wait(60)
        except Exception:  # the kind depends on how it was started; what counts is that it is still there
            raise AssertionError(f"{name} does not end after the job is done:\n{launch.output()[-2000:]}") from None
    run.ended_at = time.monotonic()
    for launch in run.daemons:
        if launch.process.poll() is None:
            launch.kill(signal.SIGTERM)
            launch.process.wait(20)
    run.watch.close()


def play_job(name, options, dice, until, totals):
    """One job; AssertionError for a proof that does not hold."""
    text = HEAD.format(job=JOB, program=PROGRAMS[name])
    scenario = scenario_text.parse(f"soak-{name}.scenario", text)
    with FaultRun(scenario, options.bin, dice.randrange(1 << 24)) as run:
        run.began = time.monotonic()
        if name == "torch":
            run.python = options.torch
        try:
            run.start_daemon()
            for host in scenario.job_hosts():
                run.start(host)
            # Faster than a few starts, no launcher could get anywhere: a busy machine gets fewer faults, not weaker proofs.
            run.start_s = first_step_s(run)
            every_s = max(options.every, STARTS_A_FAULT * run.start_s)
            print(f"soak: job {totals.jobs + 1}, {name}: something breaks every {every_s:.1f} s on average", flush=True)
            injector = Injector(run, dice, every_s)
            watch_over(run, injector, until)
            end_job(run, injector)
            proofs = [proof_samples, proof_progress, proof_truth, proof_leftovers]
            if name != "torch":
                proofs.insert(0, proof_state)
            for proof in proofs:
                print(f"  {proof.check(run).splitlines()[0]}", flush=True)
            totals.add(run, injector)
            if options.keep:
                run.keep()
        except BaseException:
            run.note_processes()
            run.keep()
            print(f"\nwhat was done until then:\n{run.transcript()}\nall logs are kept in {run.folder}", flush=True)
            raise


def soak(options):
    dice, totals = random.Random(options.seed), Totals()
    turn = [options.only] if options.only else programs(options.bin, options.torch)
    until = time.monotonic() + options.minutes * 60
    fault = None
    while time.monotonic() < until and fault is None:
        name = turn[totals.jobs % len(turn)]
        try:
            play_job(name, options, dice, until, totals)
        except AssertionError as broken:
            fault = f"{name}: {broken}"
        except Exception:
            fault = f"{name}: {traceback.format_exc()}"
    print("\n" + table(totals))
    return fault, totals


def command_again(options):
    words = f"scripts/chaos --minutes {options.minutes:g} --seed {options.seed} --every {options.every:g} --bin {options.bin}"
    for name in ("torch", "only"):
        if value := getattr(options, name):
            words += f" --{name} {value}"
    return words


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--every", type=float, default=3.0)
    parser.add_argument("--torch", default="")
    parser.add_argument("--only", choices=sorted(PROGRAMS), default="")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(3), "big")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    print(f"soak: {options.minutes:g} minutes, seed {options.seed}", flush=True)
    fault, totals = soak(options)
    if fault:
        print(f"\n{fault}\nagain: {command_again(options)}")
        print(f"soak: BROKEN after {totals.faults()} faults: {fault.splitlines()[0]}")
        return 1
    print(f"soak: every proof held: {totals.jobs} jobs, {totals.faults()} faults, {totals.steps} steps; nothing was lost, "
          "nothing hung, nothing is left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
