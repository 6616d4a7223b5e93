"""The sentences that state what must be: exit codes, what screens and status.json tell, which rounds there were."""

import time

from fault_run import PATIENCE_S
from sentences import sentence


@sentence("expect exit CODE of HOSTS")
def expect_exit(run, code, names):
    """Waits for it."""
    for name in run.scenario.resolve(names):
        run.launches[name].await_exit(code, PATIENCE_S)
        run.mark_down(name, "is done")


@sentence("expect exit CODE of HOSTS within TIME")
def expect_exit_soon(run, code, names, limit_s):
    """From the last fault on."""
    expect_exit(run, code, names)
    took_s = time.monotonic() - run.faults[-1][0]
    assert took_s <= limit_s, f"it took {took_s:.1f} s"


@sentence("expect exit by SIGNAL of HOSTS")
def expect_exit_by_signal(run, number, names):
    """The launcher itself was killed by it."""
    expect_exit(run, -number, names)


@sentence("expect exit other than CODE of HOSTS")
def expect_other_exit(run, code, names):
    for name in run.scenario.resolve(names):
        got = run.launches[name].process.wait(PATIENCE_S)
        assert got != code, f"{name} ended with {code}"
        run.mark_down(name, "is done")


@sentence("expect that HOSTS show TEXT")
def expect_shown(run, names, text):
    for name in run.scenario.resolve(names):
        time_limit = time.monotonic() + 10  # a launcher waits a moment before it says what it waits for
        while not run.shows(name, text):
            assert time.monotonic() < time_limit, f"{name} does not show '{text}'"
            time.sleep(0.01)


@sentence("expect that the daemon shows TEXT")
def expect_daemon_shown(run, text):
    run.await_that(lambda: text in run.daemons[-1].output(), f"the daemon shows '{text}'", 5)


@sentence("expect that HOSTS do not show TEXT")
def expect_not_shown(run, names, text):
    for name in run.scenario.resolve(names):
        assert not run.shows(name, text), f"{name} shows '{text}'"


@sentence("expect NUMBER rounds on HOSTS")
def expect_rounds(run, count, names):
    for name in run.scenario.resolve(names):
        rounds = run.round_lines(name)
        assert len(rounds) == count, f"{name} was in {len(rounds)} rounds, not {count}: {rounds}"


@sentence("expect at most NUMBER rounds on HOSTS")
def expect_few_rounds(run, count, names):
    for name in run.scenario.resolve(names):
        rounds = run.round_lines(name)
        assert len(rounds) <= count, f"{name} was in {len(rounds)} rounds, more than {count}: {rounds}"


@sentence("expect the remembered workers")
def expect_remembered(run):
    """No process of the job's has been replaced."""
    now = sorted(run.workers().values())
    assert now == run.remembered, f"the workers are {now}, not {run.remembered}"


def was_killed(launch):
    """By SIGKILL, or whatever else leaves no time to tell of it."""
    return launch.process.poll() is not None and launch.process.poll() < 0


@sentence("expect that HOSTS name whom chance hit")
def expect_chosen(run, names):
    """Each worker that was chosen and killed, by rank and host."""
    killed = [(rank, host) for _, what, host, rank in run.chosen if what == "worker killed"]
    assert killed, "chance has hit nobody"
    for rank, host in killed:
        expect_shown(run, names, f"rank {rank} on {host} was killed by SIGKILL")


@sentence("expect that the first failure is rank NUMBER on HOST by TEXT")
def expect_first_failure(run, rank, name, cause):
    """In the status.json of every launcher that lived, and on its screen: all tell of the same one."""
    statuses = run.statuses()
    silent = [name for name, launch in run.launches.items() if name not in statuses and not was_killed(launch)]
    assert statuses and not silent, f"{', '.join(silent) or 'nobody'} has written no status.json"
    for teller, status in statuses.items():
        first = status["first_failure"]
        assert first, f"{teller} knows of no failure"
        told = (first["rank"], first["node"])
        assert told == (rank, name), f"{teller} tells of rank {told[0]} on {told[1]}, not of rank {rank} on {name}"
        assert cause in str(first), f"{teller} does not tell of '{cause}': {first}"
        expect_shown(run, (teller,), f"rank {rank} on {name}")


@sentence("expect the end reason TEXT on HOSTS")
def expect_reason(run, reason, names):
    for name in run.scenario.resolve(names):
        status = run.statuses().get(name)
        assert status, f"{name} has written no status.json"
        assert status["reason"] == reason, f"{name} gives the reason {status['reason']}, not {reason}"


@sentence("expect that round NUMBER ends within TIME")
def expect_detected(run, number, limit_s):
    """From the last fault on, for whoever is told of it first."""
    expect_within(run, f"muster: round {number} ends", limit_s)


@sentence("expect round NUMBER within TIME")
def expect_restarted(run, number, limit_s):
    """From the last fault on."""
    expect_within(run, f"muster: round {number}: ", limit_s)


def expect_within(run, text, limit_s):
    began = run.faults[-1][0]

    def first_shown():
        times = [when for name in run.launches for when, line in run.lines(name) if line.startswith(text)]
        return min(times, default=None)
    run.await_that(first_shown, f"'{text}'")
    took_s = first_shown() - began
    assert took_s <= limit_s, f"'{text}' came {took_s:.2f} s after the fault, later than {limit_s:g} s"


@sentence("expect that every process of HOST is gone within TIME")
def expect_gone(run, name, limit_s):
    deadline = time.monotonic() + limit_s
    while found := run.processes(name):
        assert time.monotonic() < deadline, f"still on {name} after {limit_s:g} s: {found.keys()}"
        time.sleep(0.01)


@sentence("expect a saved and drained step")
def expect_drained(run):
    """The workers were asked to save, and the next round went on from that very step."""
    events = [event for _, event in run.metrics()]
    drained = [e["step"] for e in events if e["event"] == "drained" and e["saved"]]
    resumed = [e["step"] for e in events if e["event"] == "resumed"]
    assert drained, "no step was saved on request"
    assert set(drained) <= set(resumed), f"saved at {drained}, resumed from {resumed}"


@sentence("expect a drained step that was not saved")
def expect_drained_unsaved(run):
    """The workers were asked to save and could not, and the next round went on from an earlier step."""
    events = [event for _, event in run.metrics() if event["event"] in ("drained", "resumed")]
    drained = [place for place, event in enumerate(events) if event["event"] == "drained" and not event["saved"]]
    assert drained, "every step was saved on request"
    for place in drained:
        step, later = events[place]["step"], events[place + 1:]
        assert later and later[0]["event"] == "resumed", f"nobody went on after step {step}, which was not saved"
        assert later[0]["step"] < step, f"step {step} was not saved, and yet {later[0]['step']} was resumed"


@sentence("expect a skipped checkpoint")
def expect_skipped(run):
    """The trainer found it damaged, said so, and took the one before."""
    skipped = [event["skipped"] for _, event in run.metrics() if event["event"] == "resumed" and event["skipped"]]
    assert skipped, "no checkpoint was skipped"


@sentence("expect a failed checkpoint")
def expect_failed_checkpoint(run):
    assert any(event["event"] == "checkpoint_failed" for _, event in run.metrics()), "every checkpoint was saved"
