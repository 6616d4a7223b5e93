"""Tests of the proofs of samples, state, time and truth: each fails where it must.

usage: proof_unit_test.py [TEST]
"""

import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import actions  # noqa: E402,F401  they make the sentences known
import proof_audit  # noqa: E402
import proof_leftovers  # noqa: E402
import proof_progress  # noqa: E402
import proof_samples  # noqa: E402
from scenario_text import ScenarioError, parse  # noqa: E402

BATCH, SAMPLES = 4, 20  # of a rank in a step; of an epoch


class Audit(unittest.TestCase):
    """Two ranks; an epoch has two whole steps, and a third one of two samples a rank."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="[a]*")  # a name is no pattern of names
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, attempt, rank):
        return f"{self.folder}/attempt-{attempt:06}-rank-{rank:04}.jsonl"

    def write(self, attempt, resumed_at, last, run=None, saved_by=None):
        """The steps from resumed_at + 1 to last."""
        for rank in range(2):
            lines = [{"attempt": attempt, "rank": rank, "world": 2, "resumed_at": resumed_at, "run": list(run or (attempt, 0)),
                      "from": list(saved_by or (attempt - 1, 0)), "samples": SAMPLES, "tail": "pad"}]
            for step in range(resumed_at + 1, last + 1):
                epoch, place = divmod(step - 1, 3)
                first, size = place * BATCH * 2, BATCH if place < 2 else 2
                lines.append({"step": step, "epoch": epoch, "repeats": 0,
                              "samples": [first + 2 * i + rank for i in range(size)]})
            with open(self.path(attempt, rank), "w", encoding="utf-8") as f:
                f.writelines(json.dumps(line) + "\n" for line in lines)

    def change(self, attempt, rank, how):
        """how(lines of that file) -> those that it has then."""
        with open(self.path(attempt, rank), encoding="utf-8") as f:
            lines = how([json.loads(line) for line in f])
        with open(self.path(attempt, rank), "w", encoding="utf-8") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)

    def check(self, made, epochs):
        return proof_audit.check_folder(self.folder, made, epochs, BATCH)

    def refuse(self, made, epochs, what):
        with self.assertRaisesRegex(AssertionError, what):
            self.check(made, epochs)

    def test_whole_epochs_and_the_steps_of_a_part_are_counted(self):
        self.write(1, 0, 4)
        self.write(2, 2, 5)
        used, told = self.check(5, 1)
        self.assertEqual(used, 20 + 16)
        self.assertIn("1 complete epochs of 20 samples", told)
        self.assertIn("16 of epoch 2", told)

    def test_what_a_superseded_attempt_did_counts_up_to_the_checkpoint_that_a_newer_one_went_on_from(self):
        self.write(1, 0, 9, run=(1, 1))  # cut off after step 3 or so
        self.write(2, 3, 4, run=(2, 2), saved_by=(1, 1))
        self.write(3, 4, 6, run=(3, 3), saved_by=(2, 2))
        self.assertEqual(self.check(6, 2)[0], 40)
        self.write(3, 5, 6, run=(3, 3), saved_by=(1, 1))  # the second one saved nothing, the first one did later
        self.assertEqual(self.check(6, 2)[0], 40)

    def test_a_last_line_that_is_missing_is_found(self):
        for made, epochs in ((3, 1), (5, 1), (2, 0)):
            for rank in range(2):
                self.write(1, 0, made)
                self.change(1, rank, lambda lines: lines[:-1])
                self.refuse(made, epochs, rf"no line of ranks \[{rank}\] tells of step {made}")

    def test_a_sample_that_is_missing_is_found(self):
        def drop(lines):
            lines[-1]["samples"].pop()
            return lines
        self.write(1, 0, 3)
        self.change(1, 1, drop)
        self.refuse(3, 1, "1 of 20 were not used in epoch 1")
        self.write(1, 0, 5)
        self.change(1, 1, drop)
        self.refuse(5, 1, "rank 1 used 3 in step 5, not 4")

    def test_a_sample_that_is_used_twice_is_found(self):
        def repeat(lines):
            lines[-1]["samples"][0] = 0
            return lines
        self.write(1, 0, 2)
        self.change(1, 1, repeat)
        self.refuse(2, 0, "0 is used again in step 2, epoch 1")

    def test_steps_that_no_file_tells_of_are_found(self):
        self.write(1, 0, 4)
        self.refuse(5, 1, "tells of 4 steps up to 4, 5 were made")

    def test_an_epoch_that_should_be_complete_and_is_not_is_found(self):
        self.write(1, 0, 2)
        self.refuse(2, 1, "4 of 20 were not used in epoch 1")


class End(unittest.TestCase):
    """What a job that succeeded has done."""

    def check(self, program, step, epochs):
        ledger = proof_samples.Ledger(20, 64, [2])
        ledger.event({"event": "resumed", "step": 0, "epoch": 0, "position": 0, "generation": 1})
        for done in range(1, step + 1):
            ledger.event({"event": "step", "step": done, "generation": 1})
        for epoch in range(1, epochs + 1):
            ledger.event({"event": "epoch", "epoch": epoch, "step": step, "complete": True, "generation": 1})
        proof_samples.check_end(program.split(), ledger)

    def test_all_epochs_or_all_steps_have_to_be_done(self):
        self.check("ddp_mnist --epochs=2", 938, 2)
        self.check("ddp_mnist --epochs=1 --max-steps=900", 469, 1)
        self.check("ddp_mnist --max-steps=900", 900, 1)
        self.check("ddp_mnist", 2345, 5)
        self.check("python x.py --steps=30", 30, 0)

    def test_a_job_that_ends_before_is_found(self):
        for program, step, epochs, what in (
                ("ddp_mnist --epochs=2", 469, 1, "with 1 of 2 epochs complete"),
                ("ddp_mnist --max-steps=900", 899, 1, "at step 899 of 900, with 1 of 5 epochs"),
                ("ddp_mnist --epochs=1 --max-steps=300", 469, 1, "at step 469 of 300"),
                ("python x.py --steps=30", 29, 0, "at step 29 of 30")):
            with self.assertRaisesRegex(AssertionError, what):
                self.check(program, step, epochs)


class FakeRun:
    """As much of a run of two hosts as the proofs look at; metrics: [(time in s, event)]."""

    def __init__(self, metrics=(), job="--nnodes=2"):
        self.scenario = parse("a.scenario", f"hosts: 2\njob: {job}\nprogram: ddp_mnist\n\nwait 1s\n")
        self.starts, self.health, self.faults, self.start_s = [(0, "n1"), (0, "n2")], [], [], 0.0
        self._metrics = metrics

    def metrics(self):
        return list(self._metrics)


class Time(unittest.TestCase):
    def test_resumes_without_a_step_are_no_progress(self):
        metrics = [(1, {"event": "step", "step": 1}), *[(at, {"event": "resumed", "step": 0}) for at in range(20, 600, 20)]]
        self.assertEqual(proof_progress.worst_silence(FakeRun(metrics), 0, 600), (599, 30))

    def test_steps_that_are_done_again_and_again_are_no_progress(self):
        metrics = [(at, {"event": "step", "step": 1 + at % 5}) for at in range(100)]
        self.assertEqual(proof_progress.worst_silence(FakeRun(metrics), 0, 100), (96, 30))


class Growth(unittest.TestCase):
    def test_what_was_not_measured_is_not_told_as_nothing(self):
        class Run:
            use = type("Use", (), {"samples": {(1, 0): [(5, 100)] * (proof_leftovers.MIN_SAMPLES - 1)}})
        self.assertIsNone(proof_leftovers.check_flat(Run))
        self.assertIn("not measured: the job was too short", proof_leftovers.told_of_growth(None))
        Run.use.samples[2, 0] = [(5, 100)] * proof_leftovers.MIN_SAMPLES
        self.assertEqual(proof_leftovers.check_flat(Run), (0, 0))


class Job(unittest.TestCase):
    """What the proofs have to know of the launchers' options."""

    def test_options_may_stand_apart_from_their_values(self):
        scenario = FakeRun(job="--nnodes=2 --nnodes 1:2 --nproc-per-node=auto").scenario
        self.assertEqual((scenario.nodes, scenario.is_elastic), ((1, 2), True))
        self.assertEqual(scenario.workers_per_node, len(os.sched_getaffinity(0)))
        self.assertEqual(FakeRun(job="--nnodes 1:2 --nnodes=2").scenario.nodes, (2, 2))

    def test_what_the_proofs_cannot_read_is_refused(self):
        for job, what in (("--nnodes=2 --nproc-per-node=many", "--nproc-per-node is a number"),
                          ("--nnodes=two", "--nnodes is N or MIN:MAX"), ("--max-restarts=3", "no --nnodes")):
            with self.assertRaisesRegex(ScenarioError, what):
                FakeRun(job=job)


if __name__ == "__main__":
    unittest.main()
