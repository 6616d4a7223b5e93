"""Trains for some minutes on four hosts, breaks something every few seconds, and proves that nothing was lost.

usage: soak.py BIN_DIR --minutes M [--seed S] [--every SECONDS] [--torch PYTHON] [--only PROGRAM] [--keep]
One job after the other, the trainers and a PyTorch script in turn, each with --nnodes=1:4 and a standing daemon on a
fifth host. Chance (by the seed) decides what is done, to whom and when; it is written down in the words of scenarios.
Exit code 0 only if every proof held; the last line says so.
"""

import argparse
import math
import os
import random
import signal
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # PYTHONSAFEPATH leaves it out
import proof_leftovers  # noqa: E402
import proof_progress  # noqa: E402
import proof_samples  # noqa: E402
import proof_state  # noqa: E402
import proof_truth  # noqa: E402
import scenario_text  # noqa: E402
from fault_run import FaultRun  # noqa: E402
from host_setup import LeftOut, can_mount  # noqa: E402
from injector import Injector  # noqa: E402
from interruption import Interrupted, end_on_signals, refuse  # noqa: E402
from job_settings import forget_settings  # noqa: E402
from options_parser import OptionsParser  # noqa: E402
from program_folder import check_interpreter, check_registry, check_temporary_folder, checked, command_again  # noqa: E402
from soak_table import Totals, table  # noqa: E402
from standard_output import use_standard_output  # noqa: E402
from torch_probe import interpreter, torch_version  # noqa: E402

JOB = "--nnodes=1:4 --max-restarts=100000 --stop-grace=5"
HEAD = """hosts: 5
daemon: n5 --heartbeat-timeout=3s --state-dir={{folder}}/state
job: {job}
program: {program}

wait 0s
"""
PROGRAMS = {
    "ddp_mnist": "ddp_mnist --epochs=6 --checkpoint-every=20 --quiet",
    "fsdp_mlp": "fsdp_mlp --hidden-dim=64 --epochs=10 --checkpoint-every=20 --quiet",
    "torch": "python torch_elastic.py --steps=5000 --checkpoint-every=20",
}
DISK = "disk: checkpoint 64M\n"
JOB_LIMIT_S = 900
LEFT_OUT = 77
STARTS_A_FAULT = 1.5
ENDS_WANTED = 3  # rounds of each job that faults have ended: faults go on beyond the soak's time until then


def programs(bin_dir, torch):
    found = [name for name in ("ddp_mnist", "fsdp_mlp") if os.path.exists(f"{bin_dir}/{name}")]
    return found + (["torch"] if torch else [])


def first_step_s(run):
    """From the start to the first step: what a restart costs at least, whoever launches."""
    began = time.monotonic()
    run.await_that(lambda: run.step() > 0, "the first step is done", 300)
    return time.monotonic() - began


def watch_over(run, injector, until):
    """Faults until the job is done, or the time is over and enough rounds were ended; launchers that gave up are started
    again.
    """
    deadline = time.monotonic() + JOB_LIMIT_S
    enough, look_at = False, until
    while not run.succeeded():
        now = time.monotonic()
        assert now < deadline, f"the job is not done after {JOB_LIMIT_S} s; at step {run.step()}"
        if now > look_at:  # all lines are read for it
            enough, look_at = proof_truth.rounds_ended_by_faults(run) >= ENDS_WANTED, now + 1
        if now < until or not enough:
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


def say_left_out(injector):
    for why, kinds in injector.left_out.items():
        print(f"soak: left out: {', '.join(kinds)} ({why})", flush=True)


def play_job(name, options, dice, until, totals):
    """One job; AssertionError for a proof that does not hold."""
    text = (DISK if options.disk else "") + HEAD.format(job=JOB, program=PROGRAMS[name])
    scenario = scenario_text.parse(f"soak-{name}.scenario", text)
    with FaultRun(scenario, options.bin, dice.randrange(1 << 24)) as run:
        run.began = time.monotonic()
        if name == "torch":
            run.python = options.torch
        try:
            run.start_daemon()
            for host in scenario.job_hosts():
                run.start(host)
            # Faster than a start or two, no launcher could get anywhere: a busy machine gets fewer faults, not weaker proofs.
            run.start_s = first_step_s(run)
            every_s = max(options.every, STARTS_A_FAULT * run.start_s)
            print(f"soak: job {totals.jobs + 1}, {name}: something breaks every {every_s:.1f} s on average", flush=True)
            injector = Injector(run, dice, every_s)
            if totals.jobs == 0:
                say_left_out(injector)
            watch_over(run, injector, until)
            end_job(run, injector)
            for proof in (proof_state, proof_samples, proof_progress, proof_truth, proof_leftovers):
                print(f"  {proof.check(run).splitlines()[0]}", flush=True)
            totals.add(name, run, injector)
            assert totals.ends[-1][1], "no fault has ended a round: the job was too short to prove anything"
            if options.keep:
                run.keep()
        except BaseException as end:
            run.keep()
            if not isinstance(end, Interrupted):
                run.note_processes()
            print(f"\nwhat was done until then:\n{run.transcript()}\nall logs are kept in {run.folder}", flush=True)
            raise


def soak(options, totals):
    """What did not hold, or nothing."""
    dice = random.Random(options.seed)
    turn = [options.only] if options.only else programs(options.bin, options.torch)
    options.disk = can_mount()
    until = time.monotonic() + options.minutes * 60
    fault = None
    while (time.monotonic() < until or totals.jobs < len(turn)) and fault is None:  # each program at least once
        name = turn[totals.jobs % len(turn)]
        try:
            play_job(name, options, dice, until, totals)
        except LeftOut:
            raise
        except AssertionError as broken:
            fault = f"{name}: {broken}"
        except Exception:
            fault = f"{name}: {traceback.format_exc()}"
    return fault


def again(options):
    words = ["--minutes", f"{options.minutes:g}", "--seed", str(options.seed), "--every", f"{options.every:g}",
             "--bin", options.bin]
    for name in ("torch", "only"):
        if value := getattr(options, name):
            words += [f"--{name}", value]
    return command_again(*words)


def time_above_none(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
    return value


def read_options(arguments):
    """BIN_DIR is not looked at yet: it may have to be built."""
    parser = OptionsParser()
    parser.add_argument("bin")
    parser.add_argument("--minutes", type=time_above_none, default=3)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--every", type=time_above_none, default=3.0)
    parser.add_argument("--torch", default="")
    parser.add_argument("--only", choices=sorted(PROGRAMS), default="")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(3), "big")
    if options.torch:
        options.torch = interpreter(options.torch)
        options.torch_version = torch_version(options.torch)
    if options.only == "torch" and not options.torch:
        refuse("--only torch wants --torch PYTHON, an interpreter with PyTorch")
    return options


def check_programs(options):
    options.bin = checked(options.bin)
    there = programs(options.bin, options.torch)
    if not there or options.only and options.only not in there:
        refuse(f"{options.bin} has no {options.only or 'ddp_mnist and no fsdp_mlp'}")


def run(options):
    """The exit code."""
    check_programs(options)
    script = f", PyTorch {options.torch_version}" if options.torch else ""
    print(f"soak: {options.minutes:g} minutes, seed {options.seed}{script}", flush=True)
    totals = Totals()
    try:
        fault = soak(options, totals)
    except LeftOut as why:
        print(f"soak: left out: {why}")
        return LEFT_OUT
    except Interrupted as end:
        print(f"\nagain: {again(options)}\nsoak: interrupted by {end.name} after {totals.jobs} whole jobs", flush=True)
        return end.code
    if fault:
        print(f"\n{table(totals)}\n\n{fault}\nagain: {again(options)}\n"
              f"soak: BROKEN after {totals.faults()} faults: {fault.splitlines()[0]}")
        return 1
    print(f"\n{table(totals)}\nsoak: every proof held: {totals.jobs} jobs, {totals.faults()} faults, {totals.steps} steps; "
          "nothing was lost, nothing hung, nothing is left")
    return 0


if __name__ == "__main__":
    use_standard_output()
    check_interpreter()
    forget_settings()
    end_on_signals()
    check_temporary_folder()
    check_registry()
    sys.exit(run(read_options(sys.argv[1:])))
