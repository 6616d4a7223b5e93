"""Plays scenarios.

usage: play.py BIN_DIR FILE [--seed S] [--keep] [--full]
       play.py list | sentences
Carries out the sentences of the file in their order, then checks the proofs that hold for every scenario. A failing
one prints the command that replays it, and its folder with all logs stays. Exit code 77: left out, with the reason;
2: there is no such scenario, or it cannot be read.
"""

import glob
import json
import os
import re
import signal
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)  # PYTHONSAFEPATH leaves it out
import proof_leftovers  # noqa: E402
import proof_progress  # noqa: E402
import proof_samples  # noqa: E402
import proof_state  # noqa: E402
import scenario_text  # noqa: E402
from fault_run import FaultRun  # noqa: E402
from host_setup import LeftOut  # noqa: E402
from interruption import Interrupted, end_on_signals, refuse  # noqa: E402
from job_settings import forget_settings  # noqa: E402
from options_parser import OptionsParser  # noqa: E402
from program_folder import check_interpreter, check_registry, check_temporary_folder, checked, command_again  # noqa: E402
from scenario_checks import is_fault  # noqa: E402
from sentences import SENTENCES  # noqa: E402
from standard_output import use_standard_output  # noqa: E402

LEFT_OUT = 77


def await_answer(run, name):
    """One after the other, so that ranks are in the order of hosts, and a scenario can say where rank 1 is."""
    answer = re.compile(r"muster: .*( (is|are) here|round \d+)")
    run.await_that(lambda: any(answer.match(line) for _, line in run.lines(name)), f"{name} is answered by the daemon")


def follow(run):
    if run.scenario.daemon:
        run.start_daemon()
    for name in run.scenario.resolve(run.scenario.start):
        run.start(name)
        await_answer(run, name)
    for step in run.scenario.steps:
        print(f"{time.monotonic() - run.began:7.2f} s  {step.text}", flush=True)
        if is_fault(step):
            run.faults.append((time.monotonic(), step.text))
        try:
            step.sentence.act(run, *step.values)
        except AssertionError as fault:
            raise AssertionError(f"{run.scenario.path}:{step.line}: {step.text}: {fault}") from None


def end(run):
    """Launchers have ended by now, unless a fault holds them; the standing daemon is told to."""
    run.ended_at = time.monotonic()
    for name, launch in run.launches.items():
        stopped = name in run.down and run.down[name] != "is done"
        if launch.process.poll() is None and stopped:
            launch.kill(signal.SIGKILL)
            launch.process.wait(10)
        assert launch.process.poll() is not None, f"the launcher of {name} still runs at the scenario's end"
    for launch in [*run.daemons, *run.helpers]:
        if launch.process.poll() is None:
            launch.kill(signal.SIGTERM)
            launch.process.wait(20)


def prove(run):
    """The sentences of the proofs; AssertionError for one that does not hold."""
    run.watch.close()
    checks = [proof_samples, proof_progress] if run.scenario.is_training else []
    checks += [proof_state] if run.scenario.is_training else []
    told = [proof.check(run) for proof in (*checks, proof_leftovers)]
    with open(f"{run.folder}/result.json", "w", encoding="utf-8") as f:
        json.dump({"scenario": run.scenario.name, "seed": run.seed, "phases": proof_progress.phases(run),
                   "steps_repeated": run.steps_repeated, "proofs": told}, f, indent=1)
    return told


def keep_and_show(run, what):
    """First the logs, since whoever reads may have gone; then all in one piece."""
    run.keep()
    told = [f"\n{what}\n\nall logs are kept in {run.folder}"]
    told += [f"chance decided: {note}" for note in run.notes]
    for launch in run.all_launches:
        told.append(f"---- {launch.node.name}, exit code {launch.process.poll()} ({launch.output_path})")
        told += launch.output().splitlines()[-25:]
    path = os.path.relpath(run.scenario.path)
    again = command_again("play", path, "--seed", str(run.seed), "--bin", run.bin)
    print("\n".join([*told, f"\nagain: {again}"]), flush=True)


def play(scenario, bin_dir, seed, keep=False):
    """True if all held. What failed is printed."""
    began = time.monotonic()
    with FaultRun(scenario, bin_dir, seed) as run:
        run.began = began
        try:
            if scenario.needs_network and not run.lab.real:
                raise LeftOut("needs a network for each host")
            follow(run)
            end(run)
            for line in prove(run):
                print(f"  {line}")
        except LeftOut:
            raise
        except AssertionError as fault:
            keep_and_show(run, f"FAILED: {fault}")
        except Interrupted as why:
            keep_and_show(run, f"interrupted by {why.name}")
            raise
        except Exception:
            keep_and_show(run, f"FAILED:\n{traceback.format_exc()}")
        else:
            if keep:
                run.keep()
                print(f"  kept in {run.folder}")
            return True
        return False


def left_out(scenario, full):
    """The reason, or nothing."""
    sanitizer = os.environ.get("MUSTER_SANITIZER", "")
    if sanitizer == "thread" and scenario.is_training:
        return "at the thread sanitizer's pace training takes many minutes; the other builds run it"
    if sanitizer and scenario.clocks:
        return "a sanitizer and a changed clock do not go together"
    if not (full or scenario.always or os.environ.get("MUSTER_FULL_TESTS")):
        return "only a full run of the tests plays it (scripts/test --full)"
    return None


def load(path):
    """The scenario of this file; what is wrong with it, or that there is none, is said in one sentence."""
    try:
        scenario = scenario_text.read(path)
        scenario.nodes, scenario.workers_per_node  # noqa: B018  they are read from the job's options
        return scenario
    except scenario_text.ScenarioError as error:
        return refuse(str(error))
    except ValueError as error:
        return refuse(f"{path}: {error}")
    except OSError as error:
        return refuse(f"cannot read the scenario {path}: {error.strerror}; scripts/chaos list names all")


def attempt(scenario, bin_dir, seed, keep, full):
    """True if all held, False if not; if it was left out, the reason, which is said."""
    try:
        if why := left_out(scenario, full):
            raise LeftOut(why)
        return play(scenario, bin_dir, seed, keep)
    except LeftOut as why:
        print(f"left out: {why}", flush=True)
        return str(why)


def new_seed():
    return int.from_bytes(os.urandom(3), "big")


def show_list():
    for path in sorted(glob.glob(f"{glob.escape(HERE)}/*.scenario")):
        scenario = scenario_text.read(path)
        marks = ["in every run of the tests"] if scenario.always else []
        marks += ["needs network namespaces"] if scenario.needs_network else []
        marks += ["needs a tmpfs"] if scenario.disks else []
        marks += ["needs faketime"] if scenario.clocks else []
        marks += ["needs cgroups"] if any({"memory", "processes"} & set(l) for l in scenario.limits.values()) else []
        print(scenario.name + (f"  ({', '.join(marks)})" if marks else ""))


def show_sentences():
    import actions  # noqa: F401  they make the sentences known
    for known in sorted(SENTENCES, key=lambda s: s.pattern):
        print(known.pattern)


def show(what):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever reads may have seen enough
    return {"list": show_list, "sentences": show_sentences}[what]()


def main():
    use_standard_output()
    check_interpreter()
    forget_settings()
    if sys.argv[1:] in (["list"], ["sentences"]):
        return show(sys.argv[1])
    parser = OptionsParser()
    parser.add_argument("bin")
    parser.add_argument("file")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    end_on_signals()
    check_temporary_folder()
    check_registry()
    scenario, bin_dir = load(options.file), checked(options.bin)
    seed = options.seed if options.seed is not None else new_seed()
    return {True: 0, False: 1}.get(attempt(scenario, bin_dir, seed, options.keep, options.full), LEFT_OUT)


if __name__ == "__main__":
    sys.exit(main())
