"""Runs real jobs on several hosts of this machine, breaks them, and checks that nothing was lost.
  scripts/chaos --minutes M [--seed S] [--every SECONDS]   random faults for so long; a table, and a sentence at the end
  scripts/chaos play FILE... [--seed S]                    these scenarios (tests/fault/*.scenario)
  scripts/chaos list                                       the scenarios that there are, and what they need
  scripts/chaos sentences                                  what a scenario can say
  scripts/chaos torchrun                                   ten scenarios under muster and under PyTorch's torchrun
  scripts/chaos clean                                      removes what killed runs have left, and nothing else
--keep keeps the logs of what held, too; --bin DIR takes the programs there instead of building them; --torch PYTHON
names an interpreter with PyTorch: the soak then trains a PyTorch script as well. SIGINT, SIGTERM and SIGHUP end it, and
take the hosts down. Exit code of play: 0 if no scenario failed and one held at least; 1 otherwise; 2: not understood.
"""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # PYTHONSAFEPATH leaves it out
import play  # noqa: E402
import side_by_side  # noqa: E402
import soak  # noqa: E402
from interruption import end_on_signals, refuse  # noqa: E402
from job_settings import forget_settings  # noqa: E402
from options_parser import OptionsParser  # noqa: E402
from program_folder import REPOSITORY, check_interpreter, check_registry, check_temporary_folder, checked  # noqa: E402
from run_registry import sweep  # noqa: E402
from standard_output import use_standard_output  # noqa: E402

BUILT = ("muster", "musterd", "musterctl", "ddp_mnist", "muster_test_child")
OPTIONS = {"soak": ("minutes", "seed", "every", "torch", "only", "keep", "bin"), "play": ("seed", "keep", "bin"),
           "torchrun": ("torch", "only", "bin"), "list": (), "sentences": (), "clean": ()}


def read_words(arguments):
    """(what is to be done, files, {option: value})."""
    parser = OptionsParser(add_help=False)
    parser.add_argument("words", nargs="*")
    for name in OPTIONS["soak"]:
        if name == "keep":
            parser.add_argument("--keep", action="store_true", default=None)
        else:
            parser.add_argument(f"--{name}", type=int if name == "seed" else str)
    given = {name: value for name, value in vars(parser.parse_intermixed_args(arguments)).items() if value is not None}
    what, *files = given.pop("words") or ["soak" if "minutes" in given else ""]
    if what not in OPTIONS:
        said = f"unknown word '{what}'" if what else "it is not said what is to be done"
        refuse(f"{said}; there are: --minutes, play, list, sentences, torchrun, clean")
    for name in given:
        if name not in OPTIONS[what]:
            refuse(f"{what} takes no --{name}")
    if files and what != "play":
        refuse(f"{what} takes no '{files[0]}'")
    return what, files, given


def programs(given):
    """The folder with the programs; they are built where none is named."""
    if "bin" in given:
        return checked(given["bin"])
    build = subprocess.Popen([f"{REPOSITORY}/scripts/build", "release", *BUILT], start_new_session=True)
    try:
        code = build.wait()
    except BaseException:
        if build.poll() is None:
            os.killpg(build.pid, signal.SIGTERM)
        build.wait()
        raise
    if code != 0:
        raise SystemExit(code)
    return checked(f"{REPOSITORY}/build/release/bin")


def scenario_path(word):
    """A file, or the name of one of this folder."""
    name = os.path.basename(word).removesuffix(".scenario")
    known = f"{play.HERE}/{name}.scenario"
    return known if not os.path.exists(word) and os.path.exists(known) else word


def play_all(files, given):
    """The exit code."""
    if not files:
        refuse("play wants a scenario; scripts/chaos list names them")
    scenarios = [play.load(scenario_path(word)) for word in files]
    bin_dir, results = programs(given), []
    for scenario in scenarios:
        print(f"chaos: {scenario.name.replace('_', ' ')}", flush=True)
        seed = given.get("seed", play.new_seed())
        results.append(play.attempt(scenario, bin_dir, seed, "keep" in given, full=True))
    return verdict(results)


def verdict(results):
    """Prints how many held, and returns the exit code; each result is as of play.attempt."""
    held, failed = results.count(True), results.count(False)
    reasons = [result for result in results if isinstance(result, str)]
    why = f" ({'; '.join(sorted(set(reasons)))})" if reasons else ""
    print(f"chaos: of {len(results)} scenarios {held} held, {failed} failed, {len(reasons)} left out{why}", flush=True)
    return 0 if held and not failed else 1


def run_soak(given):
    words = ["--keep" if name == "keep" else f"--{name}={value}" for name, value in given.items() if name != "bin"]
    options = soak.read_options([given.get("bin", ""), *words])
    options.bin = programs(given)
    return soak.run(options)


def compare_with_torchrun(given):
    words = [f"--{name}={given[name]}" for name in ("torch", "only") if name in given]
    options = side_by_side.read_options([given.get("bin", ""), *words])
    options.bin = programs(given)
    return side_by_side.run(options)


def told_of(run):
    """What was removed of a killed run, and what stays; why it does is on standard error."""
    if not run.stays:
        return f"{run.file}: removed {', '.join(run.removed) or 'nothing but its file'}"
    return f"{run.file}: removed {', '.join(run.removed) or 'nothing'}; {', '.join(run.stays)} stays"


def clean():
    """Says what it removed; 1 if something stays."""
    swept = sweep()
    print("\n".join([f"chaos: {told_of(run)}" for run in swept] or ["chaos: no run that was killed has left anything"]))
    return 1 if any(run.stays for run in swept) else 0


def main(arguments):
    use_standard_output()
    check_interpreter()
    forget_settings()
    if arguments in ([], ["-h"], ["--help"]):
        print(__doc__, end="")
        return 0
    what, files, given = read_words(arguments)
    if what in ("list", "sentences"):
        return play.show(what)
    end_on_signals()
    check_temporary_folder()
    check_registry()
    if what == "play":
        return play_all(files, given)
    if what == "soak":
        return run_soak(given)
    return clean() if what == "clean" else compare_with_torchrun(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
