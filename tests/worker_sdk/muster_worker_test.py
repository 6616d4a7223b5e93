"""worker_sdk/python/muster_worker.py against an agent of the test's own."""

import io
import os
import pathlib
import socket
import sys
import tempfile
import unittest
from contextlib import redirect_stderr
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "worker_sdk/python"))
import muster_worker  # noqa: E402


class MusterWorkerTest(unittest.TestCase):
    def setUp(self):
        self.name = f"@muster-test-{os.getpid()}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind("\0" + self.name[1:])
        self.listener.listen()
        self.addCleanup(self.listener.close)
        self.worker = muster_worker.Worker({"RANK": "3", "LOCAL_RANK": "1", "MUSTER_ROUND": "2",
                                            "MUSTER_CHANNEL": self.name})
        self.agent, _ = self.listener.accept()
        self.agent.settimeout(10)
        self.addCleanup(self.agent.close)

    def heard(self):
        return self.agent.recv(4096).decode()

    def test_says_hello_first(self):
        self.assertEqual(self.heard(), "hello 1 2 1\n")
        self.assertEqual((self.worker.rank, self.worker.local_rank, self.worker.world_size), (3, 1, 1))

    def test_progress_in_every_step_is_sent_now_and_then(self):
        self.heard()
        for step in range(1, 1000):
            self.worker.progress(step)
        text = self.heard()
        self.assertTrue(text.startswith("progress 1\n"), text)
        self.assertLess(len(text), 500)

    def test_asked_to_save_it_says_when_it_has_and_leaves_with_0(self):
        self.heard()
        self.assertFalse(self.worker.drain_requested())
        self.agent.sendall(b"sa")
        self.assertFalse(self.worker.asked_to_save())
        self.agent.sendall(b"ve 30000\n")
        self.assertTrue(self.worker.drain_requested())
        self.assertTrue(self.worker.asked_to_save())
        with self.assertRaises(SystemExit) as end:
            self.worker.drained(812)
        self.assertEqual(end.exception.code, 0)
        self.assertEqual(self.heard(), "safe 812\n")

    def test_H3_it_says_that_it_is_done_and_goes_on(self):
        self.heard()
        self.worker.done()
        self.assertEqual(self.heard(), "done\n")

    def test_an_agent_that_is_gone_only_makes_it_silent(self):
        self.agent.close()
        self.assertFalse(self.worker.asked_to_save())
        self.worker.progress(1)

    def test_without_a_channel_nobody_asks(self):
        worker = muster_worker.Worker({})
        worker.progress(1)
        worker.done()
        self.assertFalse(worker.drain_requested())

    def test_a_channel_where_nobody_listens_is_said_once(self):
        said = io.StringIO()
        with redirect_stderr(said):
            worker = muster_worker.Worker({"MUSTER_CHANNEL": "@nobody-is-here", "RANK": "5"})
        self.assertIn("rank 5: MUSTER_CHANNEL @nobody-is-here: Connection refused", said.getvalue())
        self.assertFalse(worker.asked_to_save())

    def test_a_variable_that_is_no_number_is_named(self):
        with self.assertRaisesRegex(ValueError, "RANK=x: expected a number"):
            muster_worker.Worker({"RANK": "x"})

    def test_in_a_world_of_several_it_has_to_agree(self):
        with self.assertRaisesRegex(ValueError, "torch.distributed"):
            muster_worker.Worker({"WORLD_SIZE": "2"}).drain_requested()


class CheckpointsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "made" / "by it"

    def begin(self, launch_round, **options):
        return muster_worker.Checkpoints(self.folder, launch_round, **options)

    def names(self):
        return sorted(os.listdir(self.folder))

    @staticmethod
    def save(checkpoints, step, content=b"x"):
        return checkpoints.save(step, lambda file: file.write(content))

    def test_the_newest_step_comes_first_and_two_are_kept(self):
        checkpoints = self.begin(1)
        self.assertEqual(checkpoints.newest_first(), [])
        for step in (9, 10, 100):
            path = self.save(checkpoints, step, b"%d" % step)
        self.assertEqual([path.read_bytes() for path in checkpoints.newest_first()], [b"100", b"10"])
        self.assertEqual(path, checkpoints.newest_first()[0])
        self.assertEqual(len(self.names()), 2)

    def test_D3_the_newest_runs_is_newest_whatever_its_step_and_the_older_run_saves_no_more(self):
        cut_off = self.begin(1)
        self.save(cut_off, 100)
        next_one = self.begin(2)
        self.save(cut_off, 300)
        path = self.save(next_one, 101)
        self.assertEqual(self.begin(3).newest_first()[0], path)
        with self.assertRaisesRegex(muster_worker.SupersededError, "round 2 has taken over .* saved step-000000000101-"):
            self.save(cut_off, 400)
        self.assertEqual(next_one.newest_first()[0], path)
        self.assertFalse([name for name in self.names() if "400" in name])

    def test_D3_a_launcher_that_counts_its_rounds_anew_does_not_lose_to_the_old_one(self):
        self.save(self.begin(7), 50)
        fresh = self.begin(1)
        path = self.save(fresh, 51)
        self.assertEqual(self.begin(1).newest_first()[0], path)

    def test_one_that_cannot_be_written_costs_nothing_that_was_there(self):
        checkpoints = self.begin(1)
        path = self.save(checkpoints, 1)

        def fills_the_disk(file):
            file.write(b"half")
            raise OSError(28, "No space left on device")

        with self.assertRaises(OSError):
            checkpoints.save(2, fills_the_disk)
        self.assertEqual(self.names(), [path.name])

    def test_what_a_killed_run_left_unfinished_is_no_checkpoint_and_goes(self):
        self.folder.mkdir(parents=True)
        left = self.folder / "step-000000000005-generation-1-round-1.pt.new"
        left.write_bytes(b"half")
        (self.folder / "losses.jsonl").write_bytes(b"not ours")
        self.save(self.begin(1), 1)
        checkpoints = self.begin(2)
        self.assertEqual(len(checkpoints.newest_first()), 1)
        self.save(checkpoints, 2)
        self.assertFalse(left.exists())
        self.assertTrue((self.folder / "losses.jsonl").exists())

    def test_what_another_run_removes_before_it_is_opened_is_looked_for_anew(self):
        checkpoints = self.begin(1)
        self.assertIsNone(checkpoints.load(pathlib.Path.read_bytes))
        self.save(checkpoints, 1)
        opened = []

        def read(path):
            opened.append(path.name)
            if len(opened) < 4:
                for step in (100, 200):  # two, so that what was listed is kept no longer
                    self.save(self.begin(1 + len(opened)), step * len(opened), b"%d" % len(opened))
            return path.read_bytes()

        self.assertEqual(checkpoints.load(read), b"3")
        self.assertEqual(len(set(opened)), 4)

    def test_one_that_is_listed_and_cannot_be_found_again_and_again_is_told(self):
        checkpoints = self.begin(1)
        self.save(checkpoints, 1)
        with self.assertRaisesRegex(FileNotFoundError, "other file"):
            checkpoints.load(lambda path: (path.with_name("other file")).read_bytes())

    def test_one_that_vanishes_with_no_other_left_is_none(self):
        checkpoints = self.begin(1)
        path = self.save(checkpoints, 1)

        def read(found):
            path.unlink()
            return found.read_bytes()

        self.assertIsNone(checkpoints.load(read))

    def test_what_reading_raises_otherwise_is_passed_on(self):
        checkpoints = self.begin(1)
        self.save(checkpoints, 1)
        self.save(checkpoints, 2)
        with self.assertRaisesRegex(EOFError, "step-000000000002"):
            checkpoints.load(self.fail_to_read)

    @staticmethod
    def fail_to_read(path):
        raise EOFError(path.name)

    def test_a_step_or_a_round_that_is_no_number_is_refused_and_nothing_written(self):
        checkpoints = self.begin(1)
        for step in (-1, 10**12, 1.0, "7", None, True):
            with self.assertRaisesRegex(ValueError, f"step={step!r}: expected an int from 0 to 999999999999"):
                self.save(checkpoints, step)
        self.assertEqual(self.names(), [".tmp-begun-run-1"])
        self.assertEqual(self.save(checkpoints, 10**12 - 1), checkpoints.newest_first()[0])
        self.assertEqual(self.save(self.begin(0), 0), checkpoints.newest_first()[0])
        self.folder = self.folder / "other"
        for launch_round in (-1, 2.0, "2", None):
            with self.assertRaisesRegex(ValueError, f"launch_round={launch_round!r}: expected an int from 0 on"):
                self.begin(launch_round)
        self.assertFalse(self.folder.exists())

    def test_a_folder_with_a_checkpoints_name_is_none_and_stays(self):
        name = "step-000000000009-generation-9-round-9.pt"
        for taken in (name, f"{name}.new"):
            (self.folder / taken).mkdir(parents=True)
        checkpoints = self.begin(1)
        self.assertEqual(checkpoints.newest_first(), [])
        paths = [self.save(checkpoints, step) for step in (1, 2, 3)]
        self.assertEqual(checkpoints.newest_first(), [paths[2], paths[1]])
        self.assertEqual(self.names()[-2:], [name, f"{name}.new"])

    def test_D3_of_two_runs_that_began_before_anybody_saved_the_later_is_newer_whatever_its_round(self):
        cut_off, next_one = self.begin(5), self.begin(1)
        path = self.save(next_one, 7)
        with self.assertRaises(muster_worker.SupersededError):
            self.save(cut_off, 90)
        self.assertEqual(self.begin(1).newest_first(), [path])

    def test_a_rank_that_only_reads_claims_nothing(self):
        with mock.patch.dict(os.environ, {"RANK": "1"}):
            self.begin(1)
        self.assertEqual(self.names(), [])

    def test_what_has_just_been_saved_is_never_what_is_removed(self):
        checkpoints = self.begin(1)
        for step in (100, 200, 50):
            path = self.save(checkpoints, step)
            self.assertTrue(path.exists())

    def test_what_an_older_run_left_unfinished_makes_room_when_a_save_fails(self):
        self.save(self.begin(1), 1)
        left = self.folder / "step-000000000005-generation-1-round-1.pt.new"
        left.write_bytes(b"half")
        with self.assertRaises(ZeroDivisionError):
            self.begin(2).save(2, lambda file: 1 // 0)
        self.assertFalse(left.exists())

    def test_all_ranks_get_what_rank_0_reads_or_hear_why_not(self):
        checkpoints = self.begin(1)
        self.save(checkpoints, 1, b"one")
        sent = []

        class Dist:
            def __init__(self, rank):
                self.get_rank = lambda: rank

            def broadcast_object_list(self, objects, src):
                if self.get_rank() == src:
                    sent[:] = objects
                else:
                    objects[:] = sent

        read = pathlib.Path.read_bytes
        self.assertEqual([checkpoints.load(read, Dist(rank)) for rank in (0, 1)], [b"one", b"one"])
        with self.assertRaises(ZeroDivisionError):
            checkpoints.load(lambda path: 1 // 0, Dist(0))
        with self.assertRaisesRegex(RuntimeError, "rank 0 cannot load from .*: ZeroDivisionError: "):
            checkpoints.load(read, Dist(1))

    def test_a_number_to_keep_that_is_none_is_refused(self):
        for keep in (0, -1, "2", 2.0, True, None):
            with self.assertRaisesRegex(ValueError, f"keep={keep!r}: expected an int of 1 or more"):
                self.begin(1, keep=keep)

    def test_what_cannot_be_removed_is_told_once_and_is_no_failure_of_the_save(self):
        checkpoints = self.begin(1, keep=1)
        first = self.save(checkpoints, 1)
        (self.folder / ".tmp-begun-run-1").mkdir()  # which no unlink() removes
        told = io.StringIO()
        with redirect_stderr(told):
            second = self.save(checkpoints, 2)
            third = self.save(checkpoints, 3)
        self.assertRegex(told.getvalue(), r"^.*step-0+2-\S+: saved, but what is no longer needed cannot be removed: .*\.tmp-begun-run-1'\n$")
        self.assertEqual([path.exists() for path in (first, second, third)], [False, False, True])

    def test_D3_one_that_is_superseded_in_the_middle_of_a_save_is_told_so_and_leaves_nothing_of_it(self):
        for number, moment in enumerate(("write", "fsync", "replace", "sync of the folder")):
            self.folder = self.folder.parent / f"moment-{number}"
            older = self.begin(1)
            self.save(older, 100)
            newer = self.begin(2)
            calls = []

            def before(name, call):
                def called(*given):
                    calls.append(name)
                    if name == moment and calls.count(name) == 1:
                        self.save(newer, 50)
                    return call(*given)
                return called

            replaced = {"fsync": os.fsync, "replace": os.replace}
            with mock.patch.multiple(os, **{name: before(name, call) for name, call in replaced.items()}), \
                    mock.patch.object(muster_worker, "_sync_folder", before("sync of the folder", muster_worker._sync_folder)), \
                    self.assertRaises(muster_worker.SupersededError, msg=moment):
                older.save(500, before("write", lambda file: file.write(b"x")))
            self.assertIn(moment, calls)
            self.assertFalse([name for name in self.names() if "500" in name], moment)
            self.assertIn("-000000000050-generation-2-", newer.newest_first()[0].name)


if __name__ == "__main__":
    unittest.main()
