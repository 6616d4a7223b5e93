"""Proof 3, time: in every window in which enough hosts are healthy, there is progress; and how long each phase of a
change took.
"""

import re

import proof_samples

WINDOW_S = 30.0


def healthy_times(run, began, ended):
    """[(from, to)] in which at least the fewest nodes that the job needs count as healthy."""
    fewest, job_hosts = run.scenario.nodes[0], set(run.scenario.job_hosts())
    health = [(float("-inf"), frozenset()), *sorted(run.health, key=lambda change: change[0])]
    started = {name: when for when, name in reversed(run.starts)}
    spans, since = [], None
    for when in sorted({*started.values(), *(when for when, _ in health[1:])}):
        down = [down for changed, down in health if changed <= when][-1]
        healthy = len({name for name in job_hosts if started.get(name, ended) <= when} - down) >= fewest
        if healthy and since is None:
            since = max(when, began)
        elif not healthy and since is not None:
            spans.append((since, when))
            since = None
    if since is not None:
        spans.append((since, ended))
    return spans


def progress_times(run):
    """When a step was done that none before it had come to: a job that is restarted again and again makes none."""
    found, furthest = [], 0
    for when, event in proof_samples.of_the_newest_runs(run.metrics()):
        if event["event"] == "step" and event["step"] > furthest:
            furthest = event["step"]
            found.append(when)
    return found


def silences(run, began, ended):
    """[(from, to)] without progress, each within one healthy span."""
    steps = progress_times(run)
    found = []
    for start, stop in healthy_times(run, began, ended):
        marks = [start, *[when for when in steps if start <= when <= stop], stop]
        found += list(zip(marks, marks[1:]))
    return found


def worst_silence(run, began, ended):
    """(seconds, seconds allowed) of the one that is closest to its limit, or beyond it.

    Allowed are 30 s, and the program's own start (undisturbed, measured; PyTorch's takes many seconds on a busy machine)
    once, and once more for each fault that hit it meanwhile. To be resumed is no progress.
    """
    worst = (0.0, WINDOW_S)
    for start, stop in silences(run, began, ended):
        hits = sum(start <= when <= stop for when, _ in run.faults)
        allowed = WINDOW_S + (run.start_s * (1 + hits) if run.start_s else 0)
        worst = max(worst, (stop - start, allowed), key=lambda pair: pair[0] - pair[1])
    return worst


def start_of_script(run):
    """Seconds from the launch to a PyTorch script's first step, if nothing was done until then; else 0."""
    steps = progress_times(run)
    if run.scenario.program[0] != "python" or not steps or any(when < steps[0] for when, _ in run.faults):
        return 0.0
    return steps[0] - run.starts[0][0]


def phases(run):
    """[{"fault", "detect_s", "restart_s", "first_step_s"}]: each from the fault on, where it made a new round."""
    ends = line_times(run, r"muster: round \d+ ends")
    rounds = line_times(run, r"muster: round \d+: ")
    steps = [when for when, event in run.metrics() if event["event"] == "step"]
    found = []
    for place, (when, text) in enumerate(run.faults):
        until = run.faults[place + 1][0] if place + 1 < len(run.faults) else float("inf")
        formed = next((t for t in rounds if when < t < until), None)
        if formed is None:
            continue
        noticed = next((t for t in ends if when < t < until), formed)
        stepped = next((t for t in steps if t > formed), None)
        found.append({"fault": text, "detect_s": round(noticed - when, 3), "restart_s": round(formed - when, 3),
                      "first_step_s": round(stepped - when, 3) if stepped else None})
    return found


def line_times(run, pattern):
    return sorted(when for launch in run.all_launches for when, line in run.watch.lines(launch.output_path)
                  if re.match(pattern, line))


def check(run):
    began, ended = run.starts[0][0], run.ended_at
    run.start_s = run.start_s or start_of_script(run)
    silence, allowed = worst_silence(run, began, ended)
    assert silence <= allowed, (f"time: {silence:.1f} s without a new step while enough hosts were healthy, "
                                f"{allowed:.1f} s allowed")
    told = [f"time: at most {silence:.1f} s without a new step, {allowed:.1f} s allowed"]
    for phase in phases(run):
        first = f"{phase['first_step_s']:.2f} s" if phase["first_step_s"] else "never"
        told.append(f"{phase['fault']}: detected in {phase['detect_s']:.2f} s, next round in {phase['restart_s']:.2f} s, "
                    f"first step in {first}")
    return "\n  ".join(told)
