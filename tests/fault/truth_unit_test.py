"""Tests of the proof of truth, and of the expectations that state it: each fails where it must.

usage: truth_unit_test.py [TEST]
"""

import os
import random
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import actions  # noqa: E402,F401  they make the sentences known
import expectations  # noqa: E402
import hits  # noqa: E402
import injector  # noqa: E402
import proof_state  # noqa: E402
import proof_truth  # noqa: E402
import soak_table  # noqa: E402
from injector import Injector  # noqa: E402
from scenario_text import parse  # noqa: E402

ROUND_1 = "muster: round 1: 3 nodes, 3 workers, rank 0 here; master x:1; formed in 1 ms; all 3 nodes are here"


def round_2(why):
    return f"muster: round 2: 2 nodes, 2 workers, rank 0 here; master x:1; formed in 1 ms (stop 1 ms, spawn 1 ms); {why}"


class Launch:
    def __init__(self, name, code, lines):
        self.node = type("Node", (), {"name": name})
        self.process = type("Process", (), {"poll": lambda self: code})()
        self.output_path, self.lines = name, lines


class FakeRun:
    """Three hosts, of which n1 tells: lines are [(time in s, line)]; the others only that they are in round 1."""

    def __init__(self, lines, said=(), chosen=(), codes=(0, 0, 0), ended_at=100):
        told = [(0, ROUND_1)]
        self.all_launches = [Launch("n1", codes[0], told + list(lines)), Launch("n2", codes[1], told),
                             Launch("n3", codes[2], told)]
        self.starts = [(0, "n1"), (0, "n2"), (0, "n3")]
        self.said, self.chosen, self.ended_at = list(said), list(chosen), ended_at
        self.watch = self

    def lines(self, path):
        return next(launch.lines for launch in self.all_launches if launch.output_path == path)

    def succeeded(self):
        return True


class Told(unittest.TestCase):
    def holds(self, *arguments, **values):
        return proof_truth.check(FakeRun(*arguments, **values))

    def refuse(self, what, *arguments, **values):
        with self.assertRaisesRegex(AssertionError, what):
            self.holds(*arguments, **values)


class Forth(Told):
    """What is told was done."""

    def test_a_lost_node_was_hurt_itself(self):
        lost = [(50, "muster: round 1 ends: n3 was lost (the peer closed the connection); waiting for n2 to stop")]
        self.holds(lost, [(49, "send SIGKILL to all of n3")])
        self.holds(lost, [(20, "cut off n3"), (45, "reconnect n3")])
        self.holds(lost, (), [(49, "host killed", "n3", -1)])
        for said in ([(49, "send SIGKILL to agent of n2")], [(49, "start n3")], [(20, "send SIGKILL to agent of n3")],
                     [(20, "cut off n3"), (25, "reconnect n3")]):
            self.refuse("nothing that explains it", lost, said)
        self.refuse("nothing that explains it", lost, (), [(49, "worker killed", "n3", 2)])

    def test_the_daemons_absence_makes_it_later(self):
        lost = [(90, "muster: round 1 ends: n3 was lost (it did not come back)")]
        self.holds(lost, [(30, "send SIGKILL to the daemon"), (31, "send SIGKILL to agent of n3"), (33, "start the daemon")])

    def test_a_killed_worker_is_that_very_one(self):
        told = [(50, round_2("restart 1 of 9 after rank 2 on n3 was killed by SIGKILL; its cgroup counted no OOM kill"))]
        self.holds(told, (), [(49.9, "worker killed", "n3", 2)])
        self.refuse("nothing that explains it", told, (), [(49.9, "worker killed", "n3", 1)])
        self.refuse("nothing that explains it", told, (), [(49.9, "worker killed", "n2", 2)])
        self.refuse("nothing that explains it", told, (), [(10, "worker killed", "n3", 2)])

    def test_a_failed_exit_follows_from_a_fault_of_the_network(self):
        told = [(50, round_2("restart 1 of 9 after rank 2 on n3 exited with code 1"))]
        self.holds(told, [(45, "reset the connections of n2"), (46, "reconnect n2")])
        self.refuse("nothing that explains it", told)
        self.refuse("nothing that explains it", told, (), [(49, "worker killed", "n2", 1)])

    def test_a_sentence_without_a_rule_is_refused(self):
        self.refuse("nothing leads to this: the moon is full", [(50, round_2("the moon is full"))])

    def test_a_join_needs_no_fault(self):
        self.assertIn("1 sentences", self.holds([(50, round_2("node n3 joined (3 of 1 to 3)"))]))
        self.holds([(50, round_2("nodes n2 and n3 joined (3 of 1 to 3)"))])


class Back(Told):
    """What was done is told."""

    def test_a_killed_host_is_named(self):
        self.refuse("nobody tells of the end of round 1 after this: host killed: n2", (),
                    [(50, "send SIGKILL to all of n2")])
        late = [(80, round_2("n2 was lost (the peer closed the connection)"))]
        self.refuse("nothing that explains it|nobody tells", late, [(50, "send SIGKILL to all of n2")])

    def test_one_that_only_its_consequence_tells_of_is_not_named(self):
        self.refuse("nobody names this: host killed: n2; but: restart 1 of 9 after rank 2 on n3 exited",
                    [(51, round_2("restart 1 of 9 after rank 2 on n3 exited with code 1"))],
                    [(50, "send SIGKILL to all of n2")])

    def test_a_killed_worker_is_named(self):
        self.refuse("nobody tells of the end of round 1 after this: worker killed: rank 1 on n2", (), (),
                    [(50, "worker killed", "n2", 1)])

    def test_one_that_is_hidden_behind_another_is_counted_and_said(self):
        told = self.holds([(51, round_2("n2 was lost (the peer closed the connection)"))],
                          [(50, "send SIGKILL to all of n2")], [(50.1, "worker killed", "n3", 2)])
        self.assertIn("1 faults are named by survivors, 1 are hidden behind another one", told)
        self.assertIn("worker killed: rank 2 on n3 (behind: n2 was lost", told)

    def test_one_of_which_an_absent_daemon_could_not_hear_in_time_is_hidden_behind_that(self):
        told = self.holds([(51, round_2("restart 1 of 9 after rank 2 on n3 exited with code 1"))],
                          [(49, "send SIGKILL to the daemon"), (50, "send SIGKILL to all of n2"), (50.5, "start the daemon")])
        self.assertIn("host killed: n2 (behind: daemon killed: daemon, and: restart 1 of 9 after rank 2 on n3", told)

    def test_nothing_is_asked_of_what_came_between_rounds_or_at_the_end(self):
        ends = [(51, "muster: round 1 ends: n2 was lost (the peer closed the connection)")]
        self.holds(ends, [(50, "send SIGKILL to all of n2")], [(52, "worker killed", "n3", 2)])
        self.holds((), (), [(99, "worker killed", "n3", 2)])


class Exits(Told):
    def test_a_launcher_that_was_not_hurt_ends_with_0(self):
        self.refuse("nothing was done to n3, and its launcher ended with 75", (), codes=(0, 0, 75))
        self.holds((), [(99, "send SIGTERM to agent of n3")], codes=(0, 0, 143))

    def sent_away(self, times, name="n3", said=None):
        """n3 is lost at 10, 20 and 30 s, killed so; its fourth launcher says that it failed so many times."""
        lost = [(when, f"muster: round {number}: 2 nodes, 2 workers, rank 0 here; master x:1; formed in 1 ms; "
                 "n3 was lost (the peer closed the connection)") for number, when in ((2, 11), (3, 21), (4, 31))]
        said = [(when, "send SIGKILL to all of n3") for when in (10, 20, 30)] if said is None else said
        run = FakeRun(lost, said, codes=(0, 0, -9))
        run.all_launches.append(Launch("n3", 75, [
            (32, f"muster: job job FAILED, rendezvous: {name} failed {times} times in the last minute: it may come in again")]))
        run.all_launches[-1].output_path = "n3-again"
        run.starts.append((31, "n3"))
        return proof_truth.check(run)

    def test_one_that_failed_too_often_may_be_sent_away(self):
        self.sent_away(3)
        for arguments in ((4,), (3, "n2")):
            with self.assertRaisesRegex(AssertionError, "n3 was told that n[23] failed . times, which it did [03] times"):
                self.sent_away(*arguments)

    def test_a_failure_of_which_nobody_lived_to_tell_counts_there(self):
        killed = [(when, "send SIGKILL to all of n3") for when in (10, 20, 30)]
        run = FakeRun((), killed)
        rounds = proof_truth.rounds_of(run)
        self.assertEqual(proof_truth.failures_of("n3", 0, 60, rounds, hits.hits(run)), 3)
        self.assertEqual(proof_truth.failures_of("n3", 15, 60, rounds, hits.hits(run)), 2)
        self.assertEqual(proof_truth.failures_of("n2", 0, 60, rounds, hits.hits(run)), 0)

    def test_what_is_told_explains_one_failure_and_not_those_before_it_too(self):
        killed = [(when, "send SIGKILL to all of n3") for when in (10, 14, 18)]
        run = FakeRun([(19, "muster: round 2: 2 nodes, 2 workers, rank 0 here; master x:1; formed in 1 ms; n3 was lost")], killed)
        rounds = proof_truth.rounds_of(run)
        self.assertEqual(proof_truth.failures_of("n3", 0, 60, rounds, hits.hits(run)), 3)


class Drained(unittest.TestCase):
    """A save that was asked for and failed costs the steps since the last checkpoint."""

    def check(self, *events):
        metrics = [(0.0, dict(zip(("event", "step", "saved"), event))) for event in events]
        expectations.expect_drained_unsaved(types.SimpleNamespace(metrics=lambda: metrics))

    def test_what_was_not_saved_has_to_be_resumed_from_an_earlier_step(self):
        self.check(("step", 50), ("drained", 50, False), ("resumed", 40))
        for events, why in (([("drained", 50, True), ("resumed", 50)], "every step was saved on request"),
                            ([("drained", 50, False)], "nobody went on after step 50"),
                            ([("drained", 50, False), ("resumed", 50)], "step 50 was not saved, and yet 50 was resumed")):
            with self.assertRaisesRegex(AssertionError, why):
                self.check(*events)


class FirstFailure(unittest.TestCase):
    """All who lived have to tell of it."""

    def check(self, statuses, **values):
        run = FakeRun((), **values)
        run.launches = {launch.node.name: launch for launch in run.all_launches}
        run.statuses = lambda: {name: {"first_failure": {"rank": 1, "node": "n2", "cause": cause}}
                                for name, cause in statuses.items()}
        run.shows = lambda name, text: text == "rank 1 on n2"
        run.scenario = type("Scenario", (), {"resolve": lambda self, names: names})()
        expectations.expect_first_failure(run, 1, "n2", "exit")

    def test_one_that_wrote_no_status_is_found(self):
        self.check({"n1": "exit", "n2": "exit", "n3": "exit"})
        with self.assertRaisesRegex(AssertionError, "n2, n3 has written no status"):
            self.check({"n1": "exit"})

    def test_one_that_was_killed_could_not(self):
        self.check({"n1": "exit", "n2": "exit"}, codes=(0, 0, -9))

    def test_one_that_tells_of_something_else_is_found(self):
        with self.assertRaisesRegex(AssertionError, "n3 does not tell of 'exit'"):
            self.check({"n1": "exit", "n2": "exit", "n3": "signal"})


class State(unittest.TestCase):
    """Of a PyTorch script."""

    def test_the_loss_of_a_program_without_epochs_is_that_of_its_last_steps(self):
        events = [{"event": "step", "loss": 9.0}] * 5 + [{"event": "step", "loss": 1.0}] * proof_state.LAST_STEPS
        self.assertEqual(proof_state.last_loss(events), 1.0)
        self.assertEqual(proof_state.last_loss([*events, {"event": "epoch", "loss": 0.5}]), 0.5)
        self.assertIsNone(proof_state.last_loss([]))

    def ended_run(self, folder, job, *files):
        run = FakeRun(())
        run.folder, run.metrics_path, run.metrics = folder, f"{folder}/metrics.jsonl", lambda: []
        run.scenario = parse("a.scenario", f"hosts: 2\njob: {job}\nprogram: python torch_elastic.py\n\nwait 1s\n")
        for name in files:
            with open(f"{folder}/{name}", "w", encoding="utf-8"):
                continue
        return run

    def test_other_parameters_are_found(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(proof_state, "parameters", lambda run, _: run.digest), \
                mock.patch.object(proof_state, "undisturbed", lambda _: {"digest": "a", "loss": 1.0}):
            run = self.ended_run(folder, "--nnodes=2", "metrics.jsonl")
            run.digest = "b"
            with self.assertRaisesRegex(AssertionError, "the parameters are b, undisturbed a"):
                proof_state.check(run)
            run.digest = "a"
            self.assertIn("bit-identical", proof_state.check(run))

    def test_a_file_that_the_program_has_not_written_is_named(self):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(proof_state, "undisturbed", lambda _: {"digest": "a", "loss": 1.0}):
            for files, path in (((), "metrics.jsonl, as its --metrics-file wants"),
                                (("metrics.jsonl",), "final.safetensors, as its --export wants")):
                run = self.ended_run(folder, "--nnodes=2", *files)
                with self.assertRaisesRegex(AssertionError, f"python torch_elastic.py has not written {folder}/{path}"):
                    proof_state.check(run)

    def test_an_undisturbed_run_that_writes_no_metrics_is_told_so(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.ended_run(folder, "--nnodes=1:2")
            run.bin, run.python, run.filled = folder, sys.executable, list
            with mock.patch.object(proof_state.subprocess, "run", lambda *_, **__: types.SimpleNamespace(returncode=0)), \
                    self.assertRaisesRegex(AssertionError, f"has not written {folder}/metrics, as its --metrics-file wants"):
                proof_state.train_undisturbed(run, 2, folder)

    def test_metrics_without_a_loss_are_told_so(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(proof_state, "parameters", lambda *_: "b"), \
                mock.patch.object(proof_state, "undisturbed", lambda _: {"digest": "a", "loss": 1.0}), \
                self.assertRaisesRegex(AssertionError, f"{folder}/metrics.jsonl tells of no loss"):
            proof_state.check(self.ended_run(folder, "--nnodes=1:2", "metrics.jsonl"))


class Soak(unittest.TestCase):
    """A job that nothing has hurt proves nothing."""

    def test_rounds_that_faults_have_ended_are_counted_and_joins_are_not(self):
        for why, count in (("n3 was lost (x)", 1), ("node n3 joined (3 of 1 to 3)", 0)):
            self.assertEqual(proof_truth.rounds_ended_by_faults(FakeRun([(50, round_2(why))])), count)

    def test_the_table_tells_of_the_job_with_the_fewest(self):
        totals = soak_table.Totals()
        totals.ends = [("ddp_mnist", 7), ("torch", 0)]
        self.assertRegex(soak_table.table(totals), r"in the job with the fewest +0 \(torch\)")

    def test_a_choice_that_cannot_be_carried_out_makes_room_for_the_next_at_once(self):
        lab = types.SimpleNamespace(real=True)
        run = type("Run", (), {"launches": {}, "down": {}, "lab": lab, "scenario": types.SimpleNamespace(disks={"checkpoint": "64M"}),
                          "workers": lambda self: {}})()
        chance = Injector(run, random.Random(1), 3.0)
        chance._next_at = 5.0
        chance.step(6.0)
        self.assertEqual((chance._next_at, chance.counts), (5.0, {}))

    def test_a_launcher_that_was_sent_away_is_started_when_it_may_come_in_again(self):
        sent_away = "muster: job job FAILED, rendezvous: n3 failed 5 times in the last minute: it may come in again in {}; status: x"
        for left, wait_s in (("1 min 18 s", 79), ("2 min", 121), ("18 s", 19), ("4.5 s", 5.5)):
            self.assertEqual(injector.told_to_wait_s(sent_away.format(left)), wait_s)
        self.assertEqual(injector.told_to_wait_s("muster: job job FAILED: rank 1 on n3 exited with code 1"), 0)
        said, process = [], types.SimpleNamespace(poll=lambda: 75)
        launches = {name: type("Launch", (), {"process": process, "output": lambda self, text=text: text})()
                    for name, text in (("n2", "muster: job job FAILED"), ("n3", sent_away.format("18 s")))}
        chance = Injector(types.SimpleNamespace(launches=launches, succeeded=lambda: False, lab=types.SimpleNamespace(real=False),
                                                scenario=types.SimpleNamespace(disks={})), random.Random(1), 3.0)
        chance._say = said.append
        with mock.patch.object(injector.time, "monotonic", lambda: now):
            for now, expected in ((100, ["start n2"]), (118, 2 * ["start n2"]), (119.5, 3 * ["start n2"] + ["start n3"])):
                chance.restart_ended()
                self.assertEqual(said, expected)


class Words(unittest.TestCase):
    def test_who_was_hurt_is_read_from_what_was_said(self):
        said = [(1, "cut off what n2 send"), (2, "send SIGSTOP to all of n3"), (5, "send SIGCONT to all of n3"),
                (6, "reconnect n2"), (7, "send SIGKILL to the daemon"), (8, "start the daemon"), (9, "start n2")]
        found = [(hit.when, hit.until, hit.what, hit.host) for hit in hits.named_hits(said)]
        self.assertEqual(found, [(1, 6, "cut off", "n2"), (2, 5, "host stopped", "n3"), (7, 8, "daemon killed", "daemon")])


if __name__ == "__main__":
    unittest.main()
