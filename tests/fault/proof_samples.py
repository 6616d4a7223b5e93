"""Proof 2, samples: none is skipped, and none is used twice but those of the steps since the last checkpoint.

By the steps that rank 0 writes down, which hold of any trainer; and by the audit, where the trainer keeps one.
"""

import proof_audit

EPOCHS = 5  # where the trainers are told nothing else


def run_of(event, names=("generation", "round")):
    """Which run of the training wrote a line of the metrics file; (0, 0) where it does not say so."""
    return tuple(event.get(name, 0) for name in names)


def of_the_newest_runs(metrics):
    """[(time, event)] without what a run told after a newer one had begun: it was superseded, and had not heard of it."""
    newest, kept = (0, 0), []
    for when, event in metrics:
        newest = max(newest, run_of(event))
        if run_of(event) == newest:
            kept.append((when, event))
    return kept


class Run:
    """One life of the world: what it went on from, and how far it has come."""

    def __init__(self, step=0, place=(0, 0, 0), epoch_ends=()):
        self.base = self.step = step
        self.place = place  # step, epoch and position that it was resumed at
        self.epoch_ends = dict(epoch_ends)  # epoch, from 1 on: the step that completed it


class Ledger:
    """Follows the events of a metrics file, in which each line tells its run (generation, round).

    A run that was superseded may still write: its steps have to follow each other too, and count where a later run goes
    on from a checkpoint of it.
    """

    def __init__(self, checkpoint_every, batch, worlds):
        self.every, self.batch, self.worlds = checkpoint_every, batch, worlds
        self.repeated = 0
        self.resumes = 0
        self.drained_at = None
        self.failed_saves = 0  # told by the trainer (a full disk), since the last resume
        self.damaged = 0  # checkpoints, on purpose
        self.allowed_more = 0  # steps more that may be repeated: checkpoints that were damaged on purpose
        self.position = 0  # samples that the checked steps have used, as far as the places tell
        self.superseded = 0  # steps that a run did after a newer one had begun
        self._short_at = None  # a step with too few samples, and why that is wrong unless it ended an epoch
        self._runs = {(0, 0): Run()}
        self._newest = (0, 0)

    @property
    def _head(self):
        return self._runs[self._newest]

    @property
    def step(self):
        """That the newest run has come to."""
        return self._head.step

    @property
    def epochs(self):
        """Complete ones; each was told of in its turn."""
        ends = self._head.epoch_ends
        assert sorted(ends) == list(range(1, len(ends) + 1)), f"samples: the complete epochs are {sorted(ends)}"
        return len(ends)

    def event(self, event):
        kind, name = event["event"], run_of(event)
        if kind == "resumed":
            self._resumed(name, event)
        elif kind == "step":
            self._step(name, event["step"])
        elif kind == "epoch":
            if event["complete"]:
                self._runs[name].epoch_ends[event["epoch"]] = event["step"]
                if self._short_at and self._short_at[0] == event["step"]:
                    self._short_at = None
        elif kind == "drained" and event["saved"]:
            if name == self._newest:
                self.drained_at = event["step"]
        elif kind == "checkpoint_failed" and name == self._newest:
            self.failed_saves += 1

    def check_no_short_step(self):
        assert not self._short_at, self._short_at[1]

    def _step(self, name, step):
        self.check_no_short_step()
        if step == 1 and (name > self._newest or name == self._newest and self.step != 0):  # there was no checkpoint yet
            self._begin(name, self._newest, Run())
        assert name in self._runs, f"samples: step {step} is told by a run {name} that was not resumed"
        run = self._runs[name]
        assert step == run.step + 1, f"samples: step {step} follows step {run.step}"
        run.step = step
        self.superseded += name != self._newest

    def _resumed(self, name, event):
        step, place = event["step"], (event["step"], event["epoch"], event["position"])
        saved_by = run_of(event, ("from_generation", "from_round"))
        if self.drained_at is not None:
            # One that was damaged on purpose is left out, and the resume says so.
            excused = self.damaged > 0 and step < self.drained_at and event.get("skipped")
            assert step == self.drained_at or excused, (
                f"samples: saved on request at {self.drained_at}, resumed from {step}")
            self.drained_at = None
        assert saved_by in self._runs, f"samples: resumed from a checkpoint of a run {saved_by} that told of no step"
        if self._short_at and self._short_at[0] != step:
            self._short_at = None  # a checkpoint that nobody goes on from
        parent = self._runs[saved_by]
        assert step <= parent.step, f"samples: resumed from step {step}, but only {parent.step} were done"
        ends = {epoch: end for epoch, end in parent.epoch_ends.items() if end <= step}
        self._check_position(parent.place, place, ends)
        self._begin(name, saved_by, Run(step, place, ends))

    def _begin(self, name, saved_by, run):
        """What the run before it did is lost, but for the steps up to `run.base` if that was saved by it."""
        assert name >= self._newest, f"samples: run {name} begins after run {self._newest}, which is newer"
        back = self.step - (run.base if saved_by == self._newest else self._head.base)
        allowed = self.every * (1 + self.failed_saves) + self.allowed_more
        assert back <= allowed, f"samples: {back} steps are repeated, more than the {allowed} since the checkpoint"
        self.failed_saves = 0
        if self.step > 0:
            self.repeated += back
            self.resumes += 1
        self._runs[name] = run
        self._newest = name

    def _check_position(self, before, place, epoch_ends):
        """In one epoch every step but its last eats a whole batch of one of the possible worlds."""
        (last_step, last_epoch, last_position), (step, epoch, position) = before, place
        if epoch != last_epoch or step <= last_step:
            return
        eaten, steps = position - last_position, step - last_step
        self.position += eaten
        if step in epoch_ends.values():
            return
        low, high = min(self.worlds) * self.batch * steps, max(self.worlds) * self.batch * steps
        why = f"samples: {eaten} in {steps} steps of {self.batch} a worker, with worlds of {self.worlds}"
        assert low - max(self.worlds) * self.batch < eaten <= high, why
        if eaten < low or eaten % self.batch != 0:
            self._short_at = (step, why)  # asked to save after an epoch's last step, it leaves the epoch to the next run


def number_of(words, name, default):
    values = [word.split("=", 1)[1] for word in words if word.startswith(f"{name}=")]
    return int(values[-1]) if values else default


def check(run):
    program, per_node = run.filled(run.scenario.program), run.scenario.workers_per_node
    low, high = run.scenario.nodes
    ledger = Ledger(number_of(program, "--checkpoint-every", 200), number_of(program, "--batch-size", 64),
                    [n * per_node for n in range(low, high + 1)])
    # A checkpoint that is written in the background counts once it is whole: the one before it may have to do.
    in_the_air = 0 if "--checkpoint-wait" in program or program[0] == "python" else 1
    ledger.damaged = run.damaged_checkpoints
    ledger.allowed_more = (run.damaged_checkpoints + in_the_air) * ledger.every
    for _, event in run.metrics():
        ledger.event(event)
    run.steps_repeated = ledger.repeated
    run.samples_checked = ledger.position
    told = f"samples: {ledger.step} steps in order, {ledger.repeated} repeated over {ledger.resumes} resumes"
    if ledger.superseded:
        told += f", {ledger.superseded} more by runs that were superseded"
    if not run.succeeded():
        return told
    check_end(program, ledger)
    batch = None if any(word.startswith(("--keep=", "--drop-last")) for word in program) else ledger.batch
    return told + proof_audit.check(run, ledger.step, ledger.epochs, batch)


def check_end(program, ledger):
    """A job that succeeded has done all that it was to do: its epochs, or its steps if those are fewer."""
    ledger.check_no_short_step()
    if program[0] == "python":
        wanted = number_of(program, "--steps", ledger.step)
        assert ledger.step == wanted, f"samples: ended at step {ledger.step} of {wanted}"
        return
    epochs, steps = number_of(program, "--epochs", EPOCHS), number_of(program, "--max-steps", 0)
    if ledger.epochs == epochs and (not steps or ledger.step <= steps):
        return
    assert steps, f"samples: ended with {ledger.epochs} of {epochs} epochs complete"
    assert ledger.step == steps, (
        f"samples: ended at step {ledger.step} of {steps}, with {ledger.epochs} of {epochs} epochs complete")
