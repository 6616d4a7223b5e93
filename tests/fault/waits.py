"""The sentences that wait: for a step, a line, a phase. All have a deadline, and end early if the job does."""

import os
import re
import time

from sentences import sentence
from stored_checkpoints import entries, newest_first


@sentence("wait TIME")
def wait(run, duration_s):
    """The moment itself, where nothing can be seen of it."""
    time.sleep(duration_s)


@sentence("wait up to TIME")
def wait_up_to(run, duration_s):
    """A random moment."""
    time.sleep(run.dice.uniform(0, duration_s))


@sentence("await step NUMBER")
def await_step(run, step):
    run.await_that(lambda: run.step() >= step, f"training reaches step {step}")


@sentence("await NUMBER more steps")
def await_more_steps(run, more):
    await_step(run, steps_seen(run) + more)


def steps_seen(run):
    """Of all attempts: a resumed one counts from what it resumed."""
    return run.step()


@sentence("await that HOSTS show TEXT")
def await_shown(run, names, text):
    for name in run.scenario.resolve(names):
        run.await_that(lambda: run.shows(name, text), f"{name} shows '{text}'")


@sentence("await that HOSTS are in a round of NUMBER")
def await_round(run, names, nodes):
    """The newest of each, and the same: one that was away may still stand in an older round of this size."""
    wanted = re.compile(rf"muster: round (\d+): {nodes} nodes?,")

    def together():
        newest = [wanted.match((run.round_lines(name) or [""])[-1]) for name in run.scenario.resolve(names)]
        return all(newest) and len({match[1] for match in newest}) == 1
    run.await_that(together, f"{names} are in one round of {nodes} nodes")


def await_workers(run, are_there, what):
    """{rank: pid} of that very look for which are_there(it) held: a moment later they may be gone."""
    kept = {}

    def look():
        if not kept and are_there(found := run.workers()):
            kept.update(found)
        return bool(kept)
    run.await_that(look, what)
    return kept


@sentence("await NUMBER workers")
def await_so_many_workers(run, count):
    run.await_that(lambda: len(run.workers()) == count, f"{count} workers run")


@sentence("await a worker that is being started on HOST")
def await_spawn(run, name):
    """As soon as there is any."""
    run.await_that(lambda: any("RANK" in v for v in run.processes(name).values()), f"{name} starts a worker")


@sentence("await a checkpoint of step NUMBER")
def await_checkpoint(run, step):
    """The newest is of this step, or a later one."""
    def newest():
        return next((found for found, _ in newest_first(run)), 0)
    run.await_that(lambda: newest() >= step, f"there is a checkpoint of step {step}")


@sentence("await a checkpoint that is being written")
def await_commit(run):
    """For as short as it may be."""
    deadline = time.monotonic() + 60
    while not any(entry.startswith(".tmp-") for entry in entries(run)):
        assert time.monotonic() < deadline and not run.all_ended(), "no checkpoint is being written"


@sentence("await the file TEXT")
def await_file(run, name):
    path = run.filled([name])[0]
    run.await_that(lambda: os.path.exists(path), f"{path} is there")
