"""What a soak has seen, as a table."""

import statistics

import proof_progress


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Totals:
    def __init__(self):
        self.jobs = self.rounds = self.restarts = self.steps = self.steps_lost = self.samples = 0
        self.kinds = {}
        self.detect_s, self.restart_s, self.first_step_s = [], [], []
        self.useful_s = self.wall_s = 0.0

    def faults(self):
        return sum(self.kinds.values())

    def add(self, run, injector):
        self.jobs += 1
        for kind, count in injector.counts.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
        lines = [line for launch in run.all_launches for _, line in run.watch.lines(launch.output_path)]
        rounds = {line.split(":")[1] for line in lines if line.startswith("muster: round ") and " formed in" in line}
        self.rounds += len(rounds)
        self.restarts += len({line for line in lines if "ends: restart " in line})
        for phase in proof_progress.phases(run):
            self.detect_s.append(phase["detect_s"])
            self.restart_s.append(phase["restart_s"])
            if phase["first_step_s"] is not None:
                self.first_step_s.append(phase["first_step_s"])
        self._add_steps(run)

    def _add_steps(self, run):
        """A step is useful if no later attempt had to do it again; its length is the median one's."""
        times = [when for when, event in run.metrics() if event["event"] == "step"]
        lengths = [later - earlier for earlier, later in zip(times, times[1:])]
        self.steps += run.step()
        self.steps_lost += run.steps_repeated
        self.samples += run.samples_checked
        self.useful_s += run.step() * (statistics.median(lengths) if lengths else 0)
        self.wall_s += run.ended_at - run.starts[0][0]


def table(totals):
    rows = [(f"{kind}", f"{count}") for kind, count in sorted(totals.kinds.items())]
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
