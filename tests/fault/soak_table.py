"""What a soak has seen, as a table."""

import proof_progress
import proof_samples
import proof_truth


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def useful_seconds(metrics):
    """The time that went into steps which no later attempt did again: [(time, event)] as the watch saw them.

    Within one attempt every step counts as long as the average one: lines are read several at a time.
    """
    attempts = []  # [first step, last step, time of each]
    for when, event in proof_samples.of_the_newest_runs(metrics):
        if event["event"] == "resumed" or event["event"] == "step" and event["step"] == 1:
            attempts.append(None)
        if event["event"] != "step":
            continue
        if not attempts or attempts[-1] is None:
            attempts[-1:] = [[event["step"], event["step"], when, when]]
        attempts[-1][1], attempts[-1][3] = event["step"], when
    attempts = [attempt for attempt in attempts if attempt]
    useful = 0.0
    for place, (first, last, began, ended) in enumerate(attempts):
        kept = min([last + 1, *(later for later, *_ in attempts[place + 1:])]) - first
        if last > first:
            useful += max(0, kept) * (ended - began) / (last - first)
    return useful


class Totals:
    def __init__(self):
        self.jobs = self.rounds = self.restarts = self.steps = self.steps_lost = self.samples = 0
        self.kinds = {}
        self.ends = []  # (program, rounds that faults have ended), of each job
        self.detect_s, self.restart_s, self.first_step_s = [], [], []
        self.useful_s = self.wall_s = 0.0

    def faults(self):
        return sum(self.kinds.values())

    def add(self, name, run, injector):
        self.jobs += 1
        for kind, count in injector.counts.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
        lines = [line for launch in run.all_launches for _, line in run.watch.lines(launch.output_path)]
        rounds = {line.split(":")[1] for line in lines if line.startswith("muster: round ") and " formed in" in line}
        self.rounds += len(rounds)
        self.ends.append((name, proof_truth.rounds_ended_by_faults(run)))
        self.restarts += len({line for line in lines if "ends: restart " in line})
        for phase in proof_progress.phases(run):
            self.detect_s.append(phase["detect_s"])
            self.restart_s.append(phase["restart_s"])
            if phase["first_step_s"] is not None:
                self.first_step_s.append(phase["first_step_s"])
        self._add_steps(run)

    def _add_steps(self, run):
        self.steps += run.step()
        self.steps_lost += run.steps_repeated
        self.samples += run.samples_checked
        self.useful_s += useful_seconds(run.metrics())
        self.wall_s += run.ended_at - run.starts[0][0]


def table(totals):
    rows = [(f"{kind}", f"{count}") for kind, count in sorted(totals.kinds.items())]
    if totals.ends:
        fewest = min(totals.ends, key=lambda job: job[1])
        rows.append(("rounds that faults ended, in the job with the fewest", f"{fewest[1]} ({fewest[0]})"))
    rows += [("faults in all", f"{totals.faults()}"), ("jobs", f"{totals.jobs}"), ("rounds", f"{totals.rounds}"),
             ("restarts after failures", f"{totals.restarts}")]
    for name, values in (("fault to its detection", totals.detect_s), ("fault to the next round", totals.restart_s),
                         ("fault to the next step", totals.first_step_s)):
        rows.append((f"{name}, p50 and p99", f"{percentile(values, 0.5):.2f} s, {percentile(values, 0.99):.2f} s"))
    rows += [("steps", f"{totals.steps}"), ("steps lost (done again)", f"{totals.steps_lost}"),
             ("samples checked", f"{totals.samples}"),
             ("goodput (time in useful steps / wall time)",
              f"{totals.useful_s / totals.wall_s:.2f}" if totals.wall_s else "none")]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)
