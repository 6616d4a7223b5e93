"""Proof 2, samples: none is skipped, and none is used twice but those of the steps since the last checkpoint.

By the steps that rank 0 writes down, which hold of any trainer; and by the audit, where the trainer keeps one.
"""

import proof_audit

EPOCHS = 5  # where the trainers are told nothing else


class Ledger:
    """Follows the events of a metrics file."""

    def __init__(self, checkpoint_every, batch, worlds):
        self.every, self.batch, self.worlds = checkpoint_every, batch, worlds
        self.step = 0
        self.repeated = 0
        self.resumes = 0
        self.drained_at = None
        # Rank 0 of a host that was stopped in the middle of a step, and was lost, writes that one step down when the host goes
        # on, into the lines of those that took over: once after each resume, and it belongs to nobody.
        self.some_were_stopped = False
        self._of_the_stopped = None
        self.failed_saves = 0  # told by the trainer (a full disk), since the last resume
        self.damaged = 0  # checkpoints, on purpose
        self.allowed_more = 0  # steps more that may be repeated: checkpoints that were damaged on purpose
        self.position = 0  # samples that the checked steps have used, as far as the places tell
        self._place = (0, 0, 0)  # step, epoch and position of the last resume
        self._epoch_ends = {}  # epoch, from 1 on: the step that completed it

    @property
    def epochs(self):
        """Complete ones; each was told of in its turn."""
        assert sorted(self._epoch_ends) == list(range(1, len(self._epoch_ends) + 1)), (
            f"samples: the complete epochs are {sorted(self._epoch_ends)}")
        return len(self._epoch_ends)

    def event(self, event):
        kind = event["event"]
        if kind == "step":
            self._step(event["step"])
        elif kind == "resumed":
            self._resumed(event)
        elif kind == "epoch":
            if event["complete"]:
                self._epoch_ends[event["epoch"]] = event["step"]
        elif kind == "drained" and event["saved"]:
            self.drained_at = event["step"]
        elif kind == "checkpoint_failed":
            self.failed_saves += 1

    def _step(self, step):
        if step == self._of_the_stopped and step != self.step + 1:
            self._of_the_stopped = None
            return
        if step == 1 and self.step != 0:  # there was no checkpoint yet
            self._go_back(0)
            self._place = (0, 0, 0)
        assert step == self.step + 1, f"samples: step {step} follows step {self.step}"
        self.step = step

    def _resumed(self, event):
        step, epoch, position = event["step"], event["epoch"], event["position"]
        if self.drained_at is not None:
            # One that was damaged on purpose is left out, and the resume says so.
            excused = self.damaged > 0 and step < self.drained_at and event.get("skipped")
            assert step == self.drained_at or excused, (
                f"samples: saved on request at {self.drained_at}, resumed from {step}")
            self.drained_at = None
        self._go_back(step)
        self._check_position(step, epoch, position)

    def _go_back(self, step):
        assert step <= self.step, f"samples: resumed from step {step}, but only {self.step} were done"
        back = self.step - step
        allowed = self.every * (1 + self.failed_saves) + self.allowed_more
        assert back <= allowed, f"samples: {back} steps are repeated, more than the {allowed} since the checkpoint"
        self.failed_saves = 0
        if self.some_were_stopped:
            self._of_the_stopped = self.step + 1
        self._epoch_ends = {epoch: end for epoch, end in self._epoch_ends.items() if end <= step}
        self.repeated += back
        self.resumes += 1
        self.step = step

    def _check_position(self, step, epoch, position):
        """In one epoch every step but its last eats a whole batch of one of the possible worlds."""
        last_step, last_epoch, last_position = self._place
        self._place = (step, epoch, position)
        if epoch != last_epoch or step <= last_step:
            return
        eaten, steps = position - last_position, step - last_step
        if step in self._epoch_ends.values():
            self.position += eaten
            return
        low, high = min(self.worlds) * self.batch * steps, max(self.worlds) * self.batch * steps
        self.position += eaten
        assert low <= eaten <= high and eaten % self.batch == 0, (
            f"samples: {eaten} in {steps} steps of {self.batch} a worker, with worlds of {self.worlds}")


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
    ledger.some_were_stopped = any("SIGSTOP" in text or text.startswith("stop ") for _, text in run.said)
    ledger.damaged = run.damaged_checkpoints
    ledger.allowed_more = (run.damaged_checkpoints + in_the_air) * ledger.every
    for _, event in run.metrics():
        ledger.event(event)
    run.steps_repeated = ledger.repeated
    run.samples_checked = ledger.position
    told = f"samples: {ledger.step} steps in order, {ledger.repeated} repeated over {ledger.resumes} resumes"
    if not run.succeeded():
        return told
    check_end(program, ledger)
    batch = None if any(word.startswith(("--keep=", "--drop-last")) for word in program) else ledger.batch
    return told + proof_audit.check(run, ledger.step, ledger.epochs, batch)


def check_end(program, ledger):
    """A job that succeeded has done all that it was to do: its epochs, or its steps if those are fewer."""
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
