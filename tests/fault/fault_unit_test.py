"""Tests of the harness itself: what reads scenarios, what cleans up after dead runs, and that each proof can fail.

usage: fault_unit_test.py [TEST]
"""

import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import actions  # noqa: E402,F401  they make the sentences known
import proof_leftovers  # noqa: E402
import proof_progress  # noqa: E402
from host_network import HostNetwork  # noqa: E402
from proof_samples import Ledger  # noqa: E402
from run_registry import MARK, RunRegistry, marked_processes  # noqa: E402
from soak_table import useful_seconds  # noqa: E402
from scenario_text import ScenarioError, parse, read  # noqa: E402

HEAD = "hosts: 3\njob: --nnodes=1:3\nprogram: ddp_mnist --max-steps=10\n\n"


class Parser(unittest.TestCase):
    def refuse(self, text, *parts):
        with self.assertRaises(ScenarioError) as caught:
            parse("a.scenario", text)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_a_whole_scenario_is_read(self):
        scenario = parse("x/a_b.scenario", "# why\nhosts: 4\ndaemon: n4 --http=x\nstart: n1\njob: --nnodes=1:3\n"
                         "disk: checkpoint 8M\nlimit: n2 descriptors=64\nclock: n1 +15m\nruns: always\n"
                         "program: ddp_mnist\n\nawait step 4\nsend SIGKILL to agent of n1,n2\n"
                         'expect that all show "two words"\ncut off n2\n')
        self.assertEqual(scenario.name, "a_b")
        self.assertEqual(scenario.job_hosts(), ["n1", "n2", "n3"])
        self.assertEqual((scenario.nodes, scenario.is_elastic, scenario.always), ((1, 3), True, True))
        self.assertEqual([step.line for step in scenario.steps], [12, 13, 14, 15])
        self.assertEqual(scenario.steps[1].values[1], ("n1", "n2"))
        self.assertEqual(scenario.steps[2].values, [("all",), "two words"])
        self.assertTrue(scenario.needs_network)

    def test_a_wrong_sentence_is_told_with_its_line_and_the_nearest_one(self):
        self.refuse(HEAD + "await step 3\nsned SIGKILL to worker 1\n", "a.scenario:6", "sned", "send SIGNAL to worker NUMBER")

    def test_a_wrong_value_says_what_is_expected(self):
        self.refuse(HEAD + "send SIGFOO to worker 1\n", "a.scenario:5", "as in SIGKILL")
        self.refuse(HEAD + "wait 3\n", "2.5s")
        self.refuse(HEAD + "fill the disk of attic\n", "checkpoint, logs, state")

    def test_a_wrong_head_is_told(self):
        self.refuse("hosts: many\n", "a.scenario:1", "number")
        self.refuse("hosts: 99\n", "1 to 16")
        self.refuse("guests: 2\n", "'guests: 2'", "hosts")
        self.refuse("disk: checkpoint\n", "too few")
        self.refuse("limit: n1 patience=3\n", "descriptors=64")
        self.refuse("hosts: 2\n\nwait 1s\n", "program")
        self.refuse(HEAD, "no sentence")

    def test_a_host_that_is_not_there_is_told(self):
        self.refuse(HEAD + "cut off n4\n", "no host n4")
        self.refuse("daemon: n7\n" + HEAD + "wait 1s\n", "no host n7")

    def test_every_scenario_of_this_folder_can_be_read(self):
        paths = glob.glob(f"{HERE}/*.scenario")
        self.assertGreaterEqual(len(paths), 10)
        for path in paths:
            self.assertTrue(read(path).steps, path)


class Registry(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.TemporaryDirectory(prefix="muster-registry-")
        self.addCleanup(self.top.cleanup)

    def dead_run(self, *things):
        """A run that ended without any cleaning."""
        code = (f"import sys, os; sys.path.insert(0, {os.path.join(HERE, '..', 'support')!r})\n"
                f"from run_registry import RunRegistry\nr = RunRegistry({self.top.name!r} + '/registry')\n"
                + "".join(f"r.note({kind!r}, {name!r})\n" for kind, name in things) + "os._exit(1)")
        subprocess.run([sys.executable, "-c", code], check=False)

    def test_what_a_dead_run_has_left_is_removed_by_the_next(self):
        folder = f"{self.top.name}/left"
        os.mkdir(folder)
        sleeper = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: folder})
        self.addCleanup(sleeper.kill)
        while not marked_processes(folder):
            time.sleep(0.01)
        self.dead_run(("folder", folder), ("processes", folder))
        with RunRegistry(f"{self.top.name}/registry") as registry:
            self.assertEqual(len(registry.removed), 1)
        self.assertFalse(os.path.exists(folder))
        self.assertEqual(sleeper.wait(10), -9)
        self.assertEqual(os.listdir(f"{self.top.name}/registry"), [])

    def test_a_network_can_be_made_right_after_another_was_removed(self):
        allowed = []
        for _ in range(4):
            with RunRegistry(f"{self.top.name}/registry") as registry:
                allowed.append(HostNetwork(registry, 3).real)
        self.assertEqual(allowed, 4 * allowed[:1])

    def test_a_living_runs_things_stay(self):
        folder = f"{self.top.name}/mine"
        os.mkdir(folder)
        with RunRegistry(f"{self.top.name}/registry") as living:
            living.note("folder", folder)
            with RunRegistry(f"{self.top.name}/registry") as other:
                self.assertEqual(other.removed, [])
            self.assertTrue(os.path.exists(folder))
        self.assertFalse(os.path.exists(folder))

    def test_a_folder_that_is_to_be_kept_outlives_its_run(self):
        folder = f"{self.top.name}/kept"
        os.mkdir(folder)
        with RunRegistry(f"{self.top.name}/registry") as registry:
            registry.note("folder", folder)
            registry.keep(folder)
        self.assertTrue(os.path.exists(folder))


def steps(first, last):
    return [{"event": "step", "step": step} for step in range(first, last + 1)]


def resumed(step, position, epoch=0):
    return {"event": "resumed", "step": step, "epoch": epoch, "position": position, "skipped": []}


class Proofs(unittest.TestCase):
    """Each proof fails where it must."""

    def follow(self, *events):
        ledger = Ledger(20, 64, [1, 2, 3])
        for event in events:
            ledger.event(event)
        return ledger

    def test_steps_since_the_checkpoint_may_be_repeated(self):
        ledger = self.follow(*steps(1, 35), resumed(20, 20 * 128), *steps(21, 60))
        self.assertEqual((ledger.step, ledger.repeated, ledger.resumes), (60, 15, 1))

    def test_a_skipped_step_is_found(self):
        with self.assertRaisesRegex(AssertionError, "step 5 follows step 3"):
            self.follow(*steps(1, 3), *steps(5, 6))

    def test_a_resume_from_beyond_is_found(self):
        with self.assertRaisesRegex(AssertionError, "only 10 were done"):
            self.follow(*steps(1, 10), resumed(20, 20 * 128))

    def test_too_many_repeated_steps_are_found(self):
        with self.assertRaisesRegex(AssertionError, "40 steps are repeated"):
            self.follow(*steps(1, 60), resumed(20, 20 * 128))

    def test_a_drained_step_that_is_not_resumed_from_is_found(self):
        with self.assertRaisesRegex(AssertionError, "saved on request at 33"):
            self.follow(*steps(1, 33), {"event": "drained", "step": 33, "saved": True}, resumed(20, 20 * 128))

    def test_one_that_was_damaged_on_purpose_is_excused_if_the_resume_says_so(self):
        ledger = Ledger(20, 64, [2])
        ledger.damaged = 1
        for event in [*steps(1, 30), {"event": "drained", "step": 30, "saved": True}]:
            ledger.event(event)
        with self.assertRaisesRegex(AssertionError, "saved on request at 30"):
            ledger.event(resumed(20, 20 * 128))
        ledger.event({**resumed(20, 20 * 128), "skipped": ["step-30: wrong checksum"]})

    def test_saves_that_failed_and_were_told_are_allowed_for_until_the_next_resume(self):
        failed = {"event": "checkpoint_failed", "step": 40}
        self.follow(*steps(1, 55), failed, resumed(20, 20 * 128))
        with self.assertRaisesRegex(AssertionError, "35 steps are repeated, more than the 20"):
            self.follow(*steps(1, 55), failed, resumed(20, 20 * 128), *steps(21, 55), resumed(20, 20 * 128))

    def test_one_line_of_a_worker_that_was_stopped_in_mid_step_belongs_to_nobody(self):
        def follow(stopped, *events):
            ledger = Ledger(20, 64, [2])
            ledger.some_were_stopped = stopped
            for event in events:
                ledger.event(event)
            return ledger
        late = [*steps(1, 35), resumed(20, 20 * 128), *steps(21, 23), *steps(36, 36), *steps(24, 60)]
        ledger = follow(True, *late)
        self.assertEqual((ledger.step, ledger.repeated, ledger.resumes), (60, 15, 1))
        with self.assertRaisesRegex(AssertionError, "step 36 follows step 23"):
            follow(False, *late)
        with self.assertRaisesRegex(AssertionError, "step 36 follows step 23"):
            follow(True, *late[:40], *steps(36, 36))

    def test_a_position_that_no_world_can_reach_is_found(self):
        with self.assertRaisesRegex(AssertionError, "in 20 steps"):
            self.follow(*steps(1, 20), resumed(20, 20 * 64 + 1))
        with self.assertRaisesRegex(AssertionError, "in 20 steps"):
            self.follow(*steps(1, 20), resumed(20, 20 * 256))

    def test_the_last_batch_of_an_epoch_may_be_short(self):
        epoch = {"event": "epoch", "step": 20, "epoch": 1, "complete": True}
        self.follow(*steps(1, 20), epoch, resumed(20, 20 * 64 - 17))

    def test_growth_is_seen_between_troughs(self):
        self.assertEqual(proof_leftovers.growth([(10, 100), (30, 900)] * 16), (0, 0))
        self.assertEqual(proof_leftovers.growth([(10 + n, 100) for n in range(32)]), (16, 0))

    def test_growth_is_looked_for_among_equals(self):
        sampler = proof_leftovers.UseSampler(lambda: [])
        self.addCleanup(sampler.close)
        for use in [None] * 8 + [(0, 5, 100)] * 8 + [(2, 33, 900)] * 20 + [(0, 5, 100)] * 3:
            sampler.add(1, use)
        self.assertEqual(sampler.samples, {(1, 0): [(5, 100)] * 7, (1, 2): [(33, 900)] * 18})

    def test_the_use_of_a_process_is_seen_and_that_of_a_stopped_one_is_not(self):
        children, descriptors, kib = proof_leftovers.use_of(os.getpid())
        self.assertEqual(children, 0)
        self.assertGreater(descriptors, 2)
        self.assertGreater(kib, 1000)
        child = subprocess.Popen(["sleep", "600"])
        try:
            watched = os.pidfd_open(child.pid)
            self.assertEqual(proof_leftovers.use_of(os.getpid())[0], 1)
            os.close(watched)
            child.send_signal(signal.SIGSTOP)
            deadline = time.monotonic() + 60
            while proof_leftovers.use_of(child.pid) and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertIsNone(proof_leftovers.use_of(child.pid))
        finally:
            child.kill()
            child.wait()

    def test_time_in_steps_that_were_done_again_is_not_useful(self):
        metrics = [(0.0, {"event": "step", "step": 1}), *[(n, {"event": "step", "step": n + 1}) for n in range(1, 10)],
                   (30.0, {"event": "resumed", "step": 5}), *[(30.0 + n, {"event": "step", "step": 5 + n}) for n in (1, 2, 3)]]
        self.assertEqual(useful_seconds(metrics), 5 + 3)
        self.assertEqual(useful_seconds([(1.0, {"event": "epoch"})]), 0)

    def test_silence_counts_only_while_enough_hosts_are_healthy(self):
        run = FakeRun(fewest=2, starts=[(0, "n1"), (0, "n2")], step_times=[1, 2, 80])
        self.assertEqual(proof_progress.worst_silence(run, 0, 81), (78, 30))
        run.health = [(3, frozenset({"n2"})), (70, frozenset())]
        self.assertEqual(proof_progress.worst_silence(run, 0, 81), (10, 30))

    def test_a_slow_start_and_faults_in_it_are_allowed_for(self):
        run = FakeRun(fewest=2, starts=[(0, "n1"), (0, "n2")], step_times=[1, 81])
        run.start_s, run.faults = 20.0, [(30, "send SIGKILL to a random worker"), (90, "cut off n2")]
        self.assertEqual(proof_progress.worst_silence(run, 0, 82), (80, 70))


class FakeRun:
    """As much of a run as the proof of progress looks at."""

    def __init__(self, fewest, starts, step_times):
        self.scenario = parse("a.scenario", f"hosts: 2\njob: --nnodes={fewest}:2\nprogram: ddp_mnist\n\nwait 1s\n")
        self.starts, self.health, self.faults, self.start_s, self._steps = starts, [], [], 0.0, step_times

    def metrics(self):
        return [(when, {"event": "step", "step": n}) for n, when in enumerate(self._steps, 1)]


if __name__ == "__main__":
    unittest.main()
