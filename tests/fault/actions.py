"""The sentences that do something: those of this file to processes, and those of the other files named here."""

import signal
import time

import expectations  # noqa: F401
import file_actions  # noqa: F401
import network_actions  # noqa: F401
from fault_run import HOST_MARK
from netns_lab import HasEnded
from run_processes import send
from sentences import sentence
from waits import await_workers


def signal_processes(pids, number):
    """Those that are still there; how many that were."""
    return sum(send(pid, number) for pid in pids)


def note_choice(run, when, what, host, rank=-1):
    """Whom chance chose: the words alone do not tell. The proof of truth wants to know."""
    run.chosen.append((when, what, host, rank))


def hurt_worker(run, number, rank, pid):
    """By a signal, which is noted if it kills or stops; also the host, since ranks move from round to round. HasEnded if the
    worker is there no more.
    """
    host, when = run.processes().get(pid, {}).get(HOST_MARK), time.monotonic()
    what = {signal.SIGKILL: "worker killed", signal.SIGSTOP: "worker stopped"}.get(number)
    if not send(pid, number):
        raise HasEnded(f"no {number.name} was sent: the worker of rank {rank} has just ended")
    if what and host:  # without a host it was just ending
        note_choice(run, when, what, host, rank)


def mark_by_signal(run, name, number):
    """SIGCONT makes a host count as healthy again, every other signal to its agent unhealthy."""
    if number == signal.SIGCONT:
        run.mark_up(name)
    elif number not in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
        run.mark_down(name, number.name)


@sentence("start HOSTS")
def start(run, names):
    for name in run.scenario.resolve(names):
        run.start(name)


@sentence("start the daemon")
def start_daemon(run):
    run.start_daemon()


@sentence("send SIGNAL to worker NUMBER")
def signal_worker(run, number, rank):
    workers = await_workers(run, lambda found: rank in found, f"there is a worker of rank {rank}")
    hurt_worker(run, number, rank, workers[rank])


@sentence("send SIGNAL to every worker")
def signal_every_worker(run, number):
    signal_processes(run.workers().values(), number)


@sentence("send SIGNAL to a random worker")
def signal_random_worker(run, number):
    workers = await_workers(run, bool, "there is a worker")
    rank = run.dice.choice(sorted(workers))
    run.note(f"the worker is rank {rank}")
    hurt_worker(run, number, rank, workers[rank])


@sentence("stop a random worker")
def stop_random_worker(run):
    workers = await_workers(run, bool, "there is a worker")
    rank = run.dice.choice(sorted(workers))
    run.stopped_workers.append(workers[rank])
    hurt_worker(run, signal.SIGSTOP, rank, workers[rank])


@sentence("continue the stopped workers")
def continue_workers(run):
    signal_processes(run.stopped_workers, signal.SIGCONT)
    run.stopped_workers.clear()


@sentence("send SIGNAL to agent of HOSTS")
def signal_agents(run, number, names):
    names = run.scenario.resolve(names)
    for name in names:
        mark_by_signal(run, name, number)
    for name in names:  # with nothing in between: they are to come at once, as from a terminal
        run.launches[name].kill(number)


@sentence("send SIGNAL to all of HOSTS")
def signal_hosts(run, number, names):
    """Each process there, the agent and what is not of the job included, as when the machine itself stops."""
    for name in run.scenario.resolve(names):
        mark_by_signal(run, name, number)
        if number != signal.SIGKILL:
            signal_processes(run.processes(name), number)
            continue
        while found := run.processes(name):
            signal_processes(found, number)
            time.sleep(0.005)  # until the kernel has ended them


@sentence("send SIGNAL to half of the hosts")
def signal_half(run, number):
    """At once; never the first one, so that somebody can tell of it."""
    alive = [name for name, launch in run.launches.items() if launch.process.poll() is None]
    half = run.dice.sample(alive[1:], len(alive) // 2)
    run.note(f"the hosts are {', '.join(half)}")
    for name in half:
        note_choice(run, time.monotonic(), "host killed" if number == signal.SIGKILL else number.name, name)
    signal_hosts(run, number, tuple(half))


@sentence("send SIGNAL to the daemon")
def signal_daemon(run, number):
    """The standing one or the one that a launcher hosts."""
    run.await_that(run.daemon_pids, "there is a daemon")
    if not signal_processes(run.daemon_pids(), number):
        raise HasEnded(f"no {number.name} was sent: the daemon has just ended")
    if number == signal.SIGKILL and run.daemons:
        run.daemons[-1].process.wait(10)


@sentence("freeze worker NUMBER")
def freeze_worker(run, rank):
    """It sleeps in the kernel (state D) and no signal ends it, as when a disk or a device does not answer."""
    workers = await_workers(run, lambda found: rank in found, f"there is a worker of rank {rank}")
    run.setup.freeze(workers[rank])


@sentence("thaw the frozen workers")
def thaw_workers(run):
    run.setup.thaw()


@sentence("send SIGKILL to the parent of agent of HOSTS")
def kill_parents(run, names):
    """The process that started the launcher: a shell, a scheduler's step."""
    for name in run.scenario.resolve(names):
        run.mark_down(name, "its parent was killed")
        run.launches[name].kill(signal.SIGKILL)


@sentence("remember the workers")
def remember(run):
    run.remembered = sorted(run.workers().values())
    assert run.remembered, "there are no workers to remember"


@sentence("go on")
def go(run):
    """What the child program awaits as {folder}/go."""
    with open(f"{run.folder}/go", "w"):
        pass


@sentence("set the clock of HOST to SHIFT")
def set_clock(run, name, change):
    assert name in run.scenario.clocks, f"{name} has no clock of its own: say 'clock: {name} +0s' in the head"
    run.setup.set_clock(name, change)
