"""Tests of the harness itself: what reads scenarios, what cleans up after dead runs, and that each proof can fail.

usage: fault_unit_test.py [TEST]
"""

import glob
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import actions  # noqa: E402,F401  they make the sentences known
import expectations  # noqa: E402
import file_actions  # noqa: E402
import network_actions  # noqa: E402
import proof_leftovers  # noqa: E402
import proof_progress  # noqa: E402
from host_network import HostNetwork  # noqa: E402
from host_setup import HostSetup  # noqa: E402
from injector import Injector  # noqa: E402
from netns_lab import HasEnded, Launch  # noqa: E402
from proof_samples import Ledger  # noqa: E402
from run_processes import MARK, processes_of  # noqa: E402
from run_registry import RunRegistry  # noqa: E402
from sentences import understand  # noqa: E402
from soak_table import useful_seconds  # noqa: E402
import waits  # noqa: E402
from scenario_text import ScenarioError, parse, read  # noqa: E402

HEAD = "hosts: 3\njob: --nnodes=1:3\nprogram: ddp_mnist --max-steps=10\n\n"


class Parser(unittest.TestCase):
    def refuse(self, text, *parts):
        with self.assertRaises(ScenarioError) as caught:
            parse("a.scenario", text)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_a_whole_scenario_is_read(self):
        scenario = parse("x/a_b.scenario", "# why\nhosts: 4\ndaemon: n4 --http=x\nstart: n1,n2\njob: --nnodes=1:3\n"
                         "disk: checkpoint 8M\nlimit: n2 descriptors=64\nclock: n1 +15m\nruns: always\n"
                         "program: ddp_mnist\n\nstart n3\nsend SIGKILL to agent of n1,n2\n"
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

    def test_what_stands_in_the_head_twice_is_refused_with_both_lines(self):
        for line in ("hosts: 2", "job: --nnodes=1:2", "program: child wait", "start: n1", "runs: always", "parent: n2",
                     "daemon: n3", "disk: logs 1M", "limit: n2 descriptors=64", "clock: n1 +1m", "link: n2 1ms 1M",
                     "secret: a b", "own: n2 --stop-grace=1"):
            key = line.split(":")[0]
            rest = "".join(f"{other}\n" for other in HEAD.strip().split("\n") if not other.startswith(f"{key}:"))
            parse("a.scenario", f"{line}\n{rest}\nwait 1s\n")
            self.refuse(f"{line}\n{line}\n{rest}\nwait 1s\n", "a.scenario:2: line 1 is a ", f"'{key}:", "leave one of the two")
        parse("a.scenario", "secret: a b\nsecret: c d\nown: n1 --x\nown: n2 --x\n" + HEAD + "wait 1s\n")
        self.refuse("limit: n1 descriptors=64 descriptors=32\n", "a.scenario:1", "twice")

    def test_a_line_of_the_head_that_says_nothing_or_changes_nothing_is_refused(self):
        for line in ("own: n1", "limit: n1", "job:"):
            self.refuse(f"{line}\n", "a.scenario:1", "too few")
        for line in ("own: n3 --x", "limit: n3 descriptors=64", "clock: n3 +1m", "parent: n3"):
            self.refuse(f"daemon: n3\n{line}\n{HEAD}wait 1s\n", "a.scenario:2", "no launcher is ever started on n3")
        self.refuse("disk: logs 0M\n", "a.scenario:1", "a size")
        self.refuse("secret: ../a b\n", "a.scenario:1", "no name of a file")
        self.refuse("program: python\n", "a.scenario:1", "too few")
        self.refuse("program: python nosuch.py\n", "a.scenario:1", "no script nosuch.py")
        self.refuse(HEAD.replace("1:3", "3:1") + "wait 1s\n", "a.scenario:2", "MIN:MAX")
        self.refuse(HEAD.replace("ddp_mnist", "child touch {floder}/x") + "wait 1s\n", "a.scenario:3", "{floder}", "{folder}")
        self.refuse(HEAD + "wait 1s\njob: --nnodes=2\n", "a.scenario:6", "above the empty line")

    def test_what_the_head_does_not_provide_is_told(self):
        for sentence, wanted in (("fill the disk of logs", "disk: logs"), ("make the disk of logs read-only", "disk: logs"),
                                 ("set the clock of n1 to +1m", "clock: n1"), ("start the daemon", "daemon: HOST"),
                                 ('expect that the daemon shows "x"', "daemon: HOST"), ("cut off n1 from its peers", "daemon:"),
                                 ("send SIGKILL to the parent of agent of n1", "parent: n1")):
            self.refuse(HEAD + f"wait 1s\n{sentence}\n", "a.scenario:6", wanted)

    def test_a_sentence_that_refers_to_nothing_is_refused(self):
        for sentence, wanted in (("expect the remembered workers", "remember the workers"),
                                 ("continue the stopped workers", "stop a random worker"),
                                 ("thaw the frozen workers", "freeze worker"), ("expect round 2 within 5s", "last fault"),
                                 ("expect exit 0 of all within 5s", "last fault"),
                                 ("expect that round 1 ends within 5s", "last fault"),
                                 ("expect that all name whom chance hit", "random worker")):
            self.refuse(HEAD + f"await step 3\n{sentence}\n", "a.scenario:6", wanted)
        disks = "disk: logs 1M\ndisk: state 1M\n" + HEAD
        self.refuse(disks + "fill the disk of state\nempty the disk of logs\n", "a.scenario:8", "'fill the disk of FOLDER'")
        parse("a.scenario", disks + "fill the disk of logs\nempty the disk of logs\n")

    def test_who_was_never_started_or_has_ended_or_runs_already_is_told(self):
        head = "start: n1,n2\n" + HEAD
        self.refuse(head + "await that all are in a round of 3\n", "a.scenario:6", "on n3 before")
        parse("a.scenario", head + "start n3\nawait that all are in a round of 3\n")
        self.refuse(head + "expect exit 0 of n1\nsend SIGKILL to agent of n1\n", "a.scenario:7", "n1 has ended by line 6")
        self.refuse(head + "expect exit 0 of all\n", "on n3 before")
        self.refuse(HEAD + "expect exit 0 of all\nexpect exit 1 of n2\n", "a.scenario:6", "n2 has ended by line 5")
        parse("a.scenario", head + "expect exit 1 of n1\nstart n1\nsend SIGKILL to agent of n1\nexpect exit by SIGKILL of n1\n")
        for sentence in ("send SIGKILL to worker 1", "send SIGSTOP to every worker", "stop a random worker", "freeze worker 0",
                         "send SIGKILL to half of the hosts"):
            self.refuse(HEAD + f"expect exit 0 of all\n{sentence}\n", "a.scenario:6", "ended by line 5, and their workers")
        self.refuse(HEAD + "await step 3\nstart n1\n", "a.scenario:6", "runs already")
        parse("a.scenario", HEAD + "send SIGKILL to agent of n1\nstart n1\n")

    def test_what_is_said_twice_or_has_come_already_is_refused(self):
        self.refuse(HEAD + 'expect 1 rounds on n1\nexpect that n1 show "x"\nexpect 1 rounds on n1\n', "a.scenario:7", "line 5")
        parse("a.scenario", HEAD + 'expect that n1 show "x"\nawait 5 more steps\nexpect that n1 show "x"\n')
        self.refuse(HEAD + "await step 50\nawait step 40\n", "a.scenario:6", "line 5 has awaited step 50")
        self.refuse(HEAD + "await a checkpoint of step 20\nwait 1s\nawait a checkpoint of step 20\n", "a.scenario:7")
        parse("a.scenario", HEAD + "await step 50\nsend SIGKILL to every worker\nawait step 40\n")

    def test_more_than_there_can_be_is_refused(self):
        for sentence, why in (("send SIGKILL to worker 3", "no rank 3"), ("freeze worker 3", "no rank 3"),
                              ("await 4 workers", "3 workers"), ("await that n1 are in a round of 4", "1 to 3"),
                              ("await that n1 are in a round of 0", "1 to 3"), ("take the port 0 on n1", "1 to 65535"),
                              ("lose 101 percent of what n1 receives", "0 to 100"), ("expect exit 256 of all", "0 to 255"),
                              ('expect that the first failure is rank 3 on n1 by "x"', "no rank 3"),
                              ('expect that n1 show ""', "a text is wanted"), ("cut off n1,n1", "twice"),
                              ("let n1 have the address nowhere", "as in 10.77.0.9"), ("await step ²", "number is wanted"),
                              ("await the file {floder}/x", "nothing stands for {floder}")):
            self.refuse(HEAD + f"wait 1s\n{sentence}\n", "a.scenario:6", why)
        parse("a.scenario", HEAD.replace("1:3", "1:3 --nproc-per-node=2") + "send SIGKILL to worker 5\nawait 6 workers\n")

    def test_a_mistake_is_told_with_its_own_line_not_the_last_one(self):
        self.refuse(HEAD + "cut off n4\nwait 1s\n", "a.scenario:5: cut off n4: there is no host n4, but n1, n2, n3")
        self.refuse("daemon: n7\n" + HEAD + "wait 1s\n", "a.scenario:1: there is no host n7")
        self.refuse("hosts: 2\njob: --max-restarts=1\nprogram: child\n\nwait 1s\n", "a.scenario:2", "no --nnodes")

    def test_every_scenario_of_this_folder_can_be_read(self):
        paths = glob.glob(f"{glob.escape(HERE)}/*.scenario")
        self.assertGreaterEqual(len(paths), 10)
        for path in paths:
            self.assertTrue(read(path).steps, path)


class Sentences(unittest.TestCase):
    def test_no_name_of_the_functions_that_carry_them_out_means_two_things(self):
        """actions.await_workers was once another function than waits.await_workers."""
        meant = {}
        for module in (actions, expectations, file_actions, network_actions, waits):
            for name, thing in vars(module).items():
                if callable(thing) and thing.__module__ not in ("builtins", "typing"):
                    self.assertIs(meant.setdefault(name, thing), thing, f"{name} of {module.__name__}")

    def test_whom_a_sentence_hurts_is_whom_it_saw(self):
        looks = [{}, {1: 7}, {}]
        run = types.SimpleNamespace(workers=lambda: looks.pop(0), await_that=lambda look, what: any(look() for _ in range(3)),
                                    setup=types.SimpleNamespace(freeze=lambda pid: self.assertEqual(pid, 7)))
        actions.freeze_worker(run, 1)


class StoredCheckpoints(unittest.TestCase):
    """Which one the sentences mean that wait for the newest, or hurt it."""

    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="muster-stored-")
        self.addCleanup(top.cleanup)
        os.mkdir(f"{top.name}/checkpoint")
        self.run_of = types.SimpleNamespace(folder=top.name, await_that=lambda condition, what: self.assertTrue(condition(), what))

    def write(self, name, text="x"):
        path = f"{self.run_of.folder}/checkpoint/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def write_whole(self, step, generation, launch_round):
        """As a trainer does."""
        own = {"generation": generation, "round": launch_round, "job": "job"}
        self.write(f"step-{step:012}/index.json", json.dumps({"checksum": "", "index": {"step": step, "run": own}}))
        self.write(f"step-{step:012}/part-00000-of-00001.safetensors", "x" * 1000)

    def expect_newest(self, step, file):
        self.assertEqual(file_actions.newest_checkpoint_file(self.run_of), f"{self.run_of.folder}/checkpoint/{file}")
        waits.await_checkpoint(self.run_of, step)
        with self.assertRaises(AssertionError):
            waits.await_checkpoint(self.run_of, step + 1)

    def test_the_newest_is_that_of_the_newest_run_whatever_its_step(self):
        self.write_whole(300, 1, 9)
        for step, generation, launch_round in ((120, 2, 1), (110, 2, 3)):
            self.write_whole(step, generation, launch_round)
            self.expect_newest(step, f"step-{step:012}/part-00000-of-00001.safetensors")

    def test_that_of_a_script_tells_its_run_in_its_name(self):
        for name in ("step-00000300-generation-1-round-9", "step-00000120-generation-2-round-3",
                     "step-00000400-generation-10-round-1.new", "losses.jsonl"):
            self.write(name)
        self.expect_newest(120, "step-00000120-generation-2-round-3")

    def test_one_whose_index_cannot_be_read_is_taken_for_the_newest_runs(self):
        self.write_whole(120, 2, 1)
        self.write_whole(140, 1, 1)
        self.write("step-000000000130/index.json", "{")
        self.expect_newest(130, "step-000000000130/index.json")

    def test_without_any_there_is_none(self):
        for _ in range(2):
            with self.assertRaisesRegex(AssertionError, "there is no checkpoint"):
                file_actions.newest_checkpoint_file(self.run_of)
            if os.path.isdir(f"{self.run_of.folder}/checkpoint"):
                os.rmdir(f"{self.run_of.folder}/checkpoint")


class Ended(unittest.TestCase):
    """A signal to what has just ended is told in a sentence, and reaches nobody else."""

    def setUp(self):
        self.process = subprocess.Popen(["sh", "-c", "exit 5"])
        self.process.wait()
        self.launch = Launch(None, self.process, "/lab/n1-0.txt")
        self.run_of = types.SimpleNamespace(
            scenario=types.SimpleNamespace(resolve=lambda names: names, disks={}), launches={"n1": self.launch}, chosen=[],
            daemons=[], lab=types.SimpleNamespace(real=True), mark_down=lambda *_: None, processes=dict, note=lambda _: None,
            workers=lambda: {1: self.process.pid}, dice=random.Random(1), daemon_pids=lambda: [self.process.pid],
            await_that=lambda condition, what: condition(), succeeded=lambda: False)

    def test_whoever_was_meant(self):
        launcher = "the process of n1-0.txt has ended, exit code 5"
        for words, who in (("send SIGINT to agent of n1", launcher), ("send SIGKILL to the parent of agent of n1", launcher),
                           ("send SIGTERM to worker 1", "the worker of rank 1 has just ended"),
                           ("send SIGKILL to a random worker", "the worker of rank 1 has just ended"),
                           ("send SIGSTOP to the daemon", "the daemon has just ended")):
            known, values = understand(words.split())
            with self.assertRaisesRegex(HasEnded, f"no {words.split()[1]} was sent: {who}"):
                known.act(self.run_of, *values)
            self.assertFalse(Injector(self.run_of, random.Random(1), 3.0)._say(words), words)

    def test_a_worker_that_is_to_be_frozen(self):
        def refuse(path, text):
            raise ProcessLookupError
        run_of = types.SimpleNamespace(lab=types.SimpleNamespace(registry=types.SimpleNamespace(note=lambda *_: None)))
        setup = types.SimpleNamespace(_run=run_of, _write=refuse)
        with mock.patch.object(os, "makedirs"), self.assertRaisesRegex(AssertionError, "cannot be frozen: it has just ended"):
            HostSetup.freeze(setup, self.process.pid)

    def test_another_one_that_has_its_number_by_now_is_not_sent_it(self):
        with mock.patch.object(os, "kill") as kill, self.assertRaises(HasEnded):
            self.launch.kill(signal.SIGTERM)
        kill.assert_not_called()


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
        folder = f"{self.top.name}/muster-lab-left"
        os.mkdir(folder)
        sleeper = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: folder})
        self.addCleanup(sleeper.kill)
        while not processes_of(folder):
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
        folder = f"{self.top.name}/muster-lab-mine"
        os.mkdir(folder)
        with RunRegistry(f"{self.top.name}/registry") as living:
            living.note("folder", folder)
            with RunRegistry(f"{self.top.name}/registry") as other:
                self.assertEqual(other.removed, [])
            self.assertTrue(os.path.exists(folder))
        self.assertFalse(os.path.exists(folder))

    def test_a_folder_that_is_to_be_kept_outlives_its_run(self):
        folder = f"{self.top.name}/muster-lab-kept"
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

    def test_a_run_that_was_superseded_counts_where_a_newer_one_went_on_from_it(self):
        def of(run, *events, saved_by=(0, 0)):
            return [{**event, "generation": run[0], "round": run[1], "from_generation": saved_by[0],
                     "from_round": saved_by[1]} for event in events]
        first, second, third = (1, 1), (2, 2), (3, 3)
        began = [*of(first, *steps(1, 35)), *of(second, resumed(20, 20 * 128), *steps(21, 23), saved_by=first),
                 *of(first, *steps(36, 90))]
        ledger = self.follow(*began, *of(second, *steps(24, 60)))
        self.assertEqual((ledger.step, ledger.repeated, ledger.resumes, ledger.superseded), (60, 15, 1, 55))
        ledger = self.follow(*began, *of(third, resumed(40, 40 * 128), *steps(41, 50), saved_by=first))
        self.assertEqual((ledger.step, ledger.repeated, ledger.resumes), (50, 18, 2))
        with self.assertRaisesRegex(AssertionError, "only 23 were done"):
            self.follow(*began, *of(third, resumed(40, 40 * 128), saved_by=second))
        with self.assertRaisesRegex(AssertionError, "step 95 follows step 90"):
            self.follow(*began, *of(first, *steps(95, 95)))
        with self.assertRaisesRegex(AssertionError, "which is newer"):
            self.follow(*began, *of(first, resumed(20, 20 * 128), saved_by=first))

    def test_a_position_that_no_world_can_reach_is_found(self):
        with self.assertRaisesRegex(AssertionError, "in 20 steps"):
            self.follow(*steps(1, 20), resumed(20, 20 * 64 + 1), *steps(21, 21))
        with self.assertRaisesRegex(AssertionError, "in 20 steps"):
            self.follow(*steps(1, 20), resumed(20, 20 * 64 + 1)).check_no_short_step()
        with self.assertRaisesRegex(AssertionError, "in 20 steps"):
            self.follow(*steps(1, 20), resumed(20, 20 * 256))

    def test_the_last_batch_of_an_epoch_may_be_short(self):
        epoch = {"event": "epoch", "step": 20, "epoch": 1, "complete": True}
        self.follow(*steps(1, 20), epoch, resumed(20, 20 * 64 - 17))

    def test_the_last_batch_of_an_epoch_that_the_next_run_completes_may_be_short(self):
        """Asked to save after that step, a trainer has not looked yet whether there is another one."""
        drained, epoch = {"event": "drained", "step": 20, "saved": True}, {"event": "epoch", "step": 20, "epoch": 1, "complete": True}
        began = (*steps(1, 20), drained, resumed(20, 20 * 64 - 17))
        self.follow(*began, resumed(20, 20 * 64 - 17), epoch, *steps(21, 22)).check_no_short_step()
        with self.assertRaisesRegex(AssertionError, "in 20 steps"):
            self.follow(*began, {**epoch, "step": 21}, *steps(21, 22))
        self.follow(*steps(1, 20), resumed(20, 20 * 64 - 17), resumed(15, 15 * 64), *steps(16, 20))

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
