"""Tests of what cleans up after runs, and of what is looked for that they may have left.

usage: cleanup_unit_test.py [TEST]
"""

import contextlib
import ctypes
import io
import json
import os
import signal
import socket
import stat
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
import host_setup  # noqa: E402
import machine_memory  # noqa: E402
import program_folder  # noqa: E402
import proof_leftovers  # noqa: E402
import proof_state  # noqa: E402
import references  # noqa: E402
import run_processes  # noqa: E402
import run_registry  # noqa: E402
from fault_run import FaultRun  # noqa: E402
from host_network import HostNetwork  # noqa: E402
from proof_leftovers import check_ports, check_shared_memory  # noqa: E402
from registry_checks import RegistryRefused  # noqa: E402
from run_processes import MARK, processes_in, processes_of  # noqa: E402
from run_registry import RunRegistry, sweep  # noqa: E402
from scenario_text import parse  # noqa: E402

NEW_SEGMENT = "import ctypes; print(ctypes.CDLL(None).shmget(0, 4096, 0o1600))"  # IPC_CREAT, for the user alone
REMOVE_SEGMENT = 0  # IPC_RMID
TELL_AND_DIE = "import os, time; print(int(time.time()), flush=True); os.kill(os.getpid(), 9)"
MAKE_MANY = ("import sys; sys.path.insert(0, sys.argv[1])\nfrom run_registry import RunRegistry\n"
             "for _ in range(150):\n with RunRegistry(sys.argv[2]): pass\n")


def scenario_of(head):
    return parse("x.scenario", head + "program: child\n\nwait 1s\n")


class InOwnFolder(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="muster-cleanup-")
        self.addCleanup(top.cleanup)
        self.top, self.registry, self.lab = top.name, f"{top.name}/registry", f"{top.name}/muster-lab-1"

    def marked_sleeper(self, mark):
        sleeper = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: mark})
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        while not processes_of(mark):
            time.sleep(0.01)
        return sleeper


class Registry(InOwnFolder):
    def test_a_frozen_process_is_thawed_and_killed(self):
        cgroup = f"/sys/fs/cgroup/freezer{host_setup.own_cgroup('freezer')}/muster-lab-{os.getpid()}-test"
        sleeper = self.marked_sleeper(self.lab)
        with RunRegistry(self.registry) as registry:
            registry.note("cgroup", cgroup)
            registry.note("processes", self.lab)
            try:
                os.makedirs(cgroup)
                for name, text in (("cgroup.procs", str(sleeper.pid)), ("freezer.state", "FROZEN")):
                    with open(f"{cgroup}/{name}", "w", encoding="ascii") as f:
                        f.write(text)
            except OSError:
                self.skipTest("needs the freezer of cgroups v1")
        self.assertEqual(sleeper.wait(10), -9)
        self.assertFalse(os.path.exists(cgroup))
        self.assertEqual(os.listdir(self.registry), [])

    def leave_what_cannot_be_removed(self):
        """A run that has made a namespace, which `ip` does not remove, and a folder; what its end says."""
        os.mkdir(self.lab)
        told = io.StringIO()
        with contextlib.redirect_stderr(told), RunRegistry(self.registry) as registry:
            registry.note("folder", self.lab)
            registry.note("namespace", "mns1a-1")
        self.assertFalse(os.path.exists(self.lab))
        return told.getvalue()

    def test_what_cannot_be_removed_is_said_and_tried_again_by_the_next_run(self):
        there = mock.patch.dict(run_registry.IS_THERE, {"namespace": lambda name: True})
        with there:
            told = self.leave_what_cannot_be_removed()
            self.assertEqual(told.count("\n"), 1)
            self.assertIn("namespace mns1a-1: it is still there", told)
            with contextlib.redirect_stderr(io.StringIO()), RunRegistry(self.registry) as later:
                self.assertEqual([swept.stays for swept in later.removed], [["namespace mns1a-1"]])
        self.assertEqual(len(sweep(self.registry)), 1)
        self.assertEqual(os.listdir(self.registry), [])

    def test_what_a_remover_raises_keeps_nothing_else_from_being_removed(self):
        def refuse(name):
            raise OSError(f"{name} is busy")
        with mock.patch.dict(run_registry.IS_THERE, {"namespace": lambda name: True}), \
                mock.patch.dict(run_registry.REMOVERS, {"namespace": refuse}):
            self.assertIn("namespace mns1a-1: mns1a-1 is busy", self.leave_what_cannot_be_removed())

    def test_a_kept_folder_holds_what_was_on_a_disk_mounted_in_it(self):
        disk = f"{self.lab}/logs"
        os.makedirs(disk)
        with RunRegistry(self.registry) as registry:
            registry.note("folder", self.lab)
            registry.note("mount", disk)
            if not host_setup.mount_tmpfs(disk, "64K"):
                self.skipTest("needs to mount a tmpfs")
            os.makedirs(f"{disk}/job")
            with open(f"{disk}/job/log", "w", encoding="utf-8") as f:
                f.write("said")
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(f"{disk}/socket")
            registry.keep(self.lab)
        self.assertFalse(os.path.ismount(disk))
        with open(f"{disk}/job/log", encoding="utf-8") as f:
            self.assertEqual(f.read(), "said")
        self.assertEqual(os.listdir(self.lab), ["logs"])

    def test_what_cannot_be_written_down_is_not_made(self):
        for name in ("two\nlines", "\udcff"):
            os.mkdir(f"{self.top}/{name}")
            with mock.patch.object(tempfile, "tempdir", f"{self.top}/{name}"), RunRegistry(self.registry) as registry:
                with self.assertRaisesRegex(ValueError, "its name"):
                    registry.make_folder("muster-lab-")
            self.assertEqual(os.listdir(f"{self.top}/{name}"), [])
        self.assertEqual(os.listdir(self.registry), [])

    def test_a_folder_is_written_down_before_it_is_made(self):
        def die(path, mode):
            raise KeyboardInterrupt
        with mock.patch.object(tempfile, "tempdir", self.top), RunRegistry(self.registry) as registry:
            with mock.patch.object(os, "mkdir", die), self.assertRaises(KeyboardInterrupt):
                registry.make_folder("muster-lab-")
            with open(registry._path, encoding="utf-8") as f:
                self.assertRegex(f.read(), f"^folder\t{self.top}/muster-lab-[0-9a-f]+\n$")

    def test_many_runs_can_begin_and_end_at_once(self):
        words = [sys.executable, "-c", MAKE_MANY, os.path.dirname(run_registry.__file__), self.registry]
        makers = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(4)]
        self.assertEqual([maker.communicate()[1] for maker in makers], 4 * [""])
        self.assertEqual([maker.returncode for maker in makers], 4 * [0])

    def test_hosts_start_where_the_temporary_folder_has_a_quote_in_its_name(self):
        own = f"{self.top}/it's a \"folder\""
        os.mkdir(own)
        with RunRegistry(self.registry) as registry:
            network = HostNetwork(registry, 1, own)
            if not network.real:
                self.skipTest("needs network namespaces")
            self.assertEqual(network.hosts[0].run("hostname").strip(), "n1")


class Trust(InOwnFolder):
    """Whoever writes a registry decides what is removed."""

    def plant(self, *lines):
        os.makedirs(self.registry, 0o700, exist_ok=True)
        path = f"{self.registry}/1-0.txt"
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f"{line}\n" for line in lines)
        return path

    def check_refused(self, why):
        """By a run, by a sweep, and at the start, in a sentence."""
        for use in (lambda: RunRegistry(self.registry), lambda: sweep(self.registry)):
            with self.assertRaisesRegex(RegistryRefused, why):
                use()
        told = io.StringIO()
        with mock.patch.object(run_registry, "registry_folder", lambda: self.registry), \
                contextlib.redirect_stderr(told), self.assertRaises(SystemExit) as caught:
            program_folder.check_registry()
        self.assertEqual((caught.exception.code, told.getvalue().count("\n")), (2, 1))
        for part in ("chaos: ", self.registry, why, "delete it"):
            self.assertIn(part, told.getvalue())
        self.assertTrue(os.path.isdir(self.lab))

    def test_a_registry_that_others_can_have_written_is_refused_and_nothing_removed(self):
        os.mkdir(self.lab)
        self.plant(f"folder\t{self.lab}")
        for mode in (0o777, 0o720, 0o702):
            os.chmod(self.registry, mode)
            self.check_refused("others may write to it")
        os.chmod(self.registry, 0o700)
        with mock.patch.object(os, "geteuid", lambda: os.getuid() + 1):
            self.check_refused(f"it belongs to user {os.getuid()}, not to {os.getuid() + 1}")
        os.rename(self.registry, f"{self.top}/elsewhere")
        os.symlink(f"{self.top}/elsewhere", self.registry)
        self.check_refused("it is a link")
        os.unlink(self.registry)
        with open(self.registry, "w", encoding="utf-8"):
            self.check_refused("it is no folder")

    def test_a_file_in_it_that_others_can_have_written_is_refused_and_nothing_removed(self):
        os.mkdir(self.lab)
        path = self.plant(f"folder\t{self.lab}")
        os.chmod(path, 0o666)
        self.check_refused("others may write to it")
        os.rename(path, f"{self.top}/elsewhere")
        os.chmod(f"{self.top}/elsewhere", 0o600)
        os.symlink(f"{self.top}/elsewhere", path)
        self.check_refused("it is a link")
        os.unlink(path)
        os.mkfifo(path)
        self.check_refused("it is no file")
        os.unlink(path)
        self.plant(f"folder\t{self.lab}")
        if os.geteuid() != 0:
            self.skipTest("only root can give files away")
        os.chown(path, 65534, -1)
        self.check_refused("it belongs to user 65534")

    def test_a_registry_is_made_for_its_user_alone(self):
        before = os.umask(0)
        try:
            with RunRegistry(self.registry) as registry:
                modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (self.registry, registry._path)]
        finally:
            os.umask(before)
        self.assertEqual(modes, [0o700, 0o600])

    def test_one_that_cannot_be_made_is_told_in_a_sentence(self):
        with open(f"{self.top}/file", "w", encoding="utf-8"):
            self.registry = f"{self.top}/file/registry"
        told = io.StringIO()
        with mock.patch.object(run_registry, "registry_folder", lambda: self.registry), \
                contextlib.redirect_stderr(told), self.assertRaises(SystemExit) as caught:
            program_folder.check_registry()
        self.assertEqual(caught.exception.code, 2)
        self.assertRegex(told.getvalue(), rf"^chaos: the registry of runs {self.registry}, .* cannot be made: Not a directory; "
                                          rf"let this user write in {self.top}/file\n$")

    def test_what_no_run_makes_is_left_alone_and_told(self):
        victims = [f"{self.top}/{name}" for name in ("mine", "muster-lab-1/inner", "muster-lab-", "muster-lab-1/../mine")]
        for victim in victims:
            os.makedirs(victim, exist_ok=True)
        self.marked_sleeper(self.top)
        path = self.plant(*(f"folder\t{victim}" for victim in victims), f"processes\t{self.top}", "mount\t/", "mount\t/proc",
                          "cgroup\t/sys/fs/cgroup", f"cgroup\t{self.top}/mine", "link\tlo", "folder\t/no/such")
        called, told = [], io.StringIO()
        with mock.patch.dict(run_registry.REMOVERS, {kind: lambda name: called.append(name) for kind in run_registry.REMOVERS}), \
                mock.patch.object(run_registry, "thaw", called.append), contextlib.redirect_stderr(told):
            swept, = sweep(self.registry)
        self.assertEqual((called, swept.removed), ([], []))
        self.assertIn(f"folder {self.top}/mine: no run gives such a name", told.getvalue())
        self.assertIn("mount /: no run", told.getvalue())
        self.assertIn("link lo", swept.stays)
        self.assertNotIn("folder /no/such", swept.stays)
        self.assertTrue(os.path.exists(path))

    def test_a_file_that_is_no_text_keeps_no_run_from_beginning(self):
        path = self.plant()
        with open(path, "wb") as f:
            f.write(b"folder\t/\xff\n")
        with contextlib.redirect_stderr(io.StringIO()) as told, RunRegistry(self.registry) as registry:
            self.assertEqual(registry.removed, [("1-0.txt", [], [f"the file {path}"])])
        self.assertIn("1-0.txt: not swept", told.getvalue())

    def test_whatever_a_run_makes_has_a_name_that_is_believed(self):
        with RunRegistry(self.registry) as registry:
            for folder in (".", "//tmp", self.top):
                with mock.patch.object(tempfile, "tempdir", folder), mock.patch.object(os, "mkdir"):
                    self.assertTrue(os.path.isabs(registry.make_folder("muster-lab-")))
            with self.assertRaisesRegex(AssertionError, "nobody would remove"):
                registry.note("folder", f"{self.top}/mine")


class WithoutEnvironment(InOwnFolder):
    """A process that has forgotten its environment, and so the run's mark, is of the run all the same."""

    def script(self, name, text):
        path = f"{self.top}/{name}"
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)
        return path

    def leave(self, output="/dev/null", after="exit 3"):
        """A script that leaves such a process, whose pid it writes down."""
        self.addCleanup(self.end_left)
        quiet = f"> {output} 2>&1" if output else ""
        return self.script("leave", f"env -i setsid sh -c 'echo $$ > {self.top}/new; mv {self.top}/new {self.top}/pid; "
                           f"exec sleep 600' {quiet} &\nwhile ! test -e {self.top}/pid; do sleep 0.01; done\n{after}")

    def left(self):
        with open(f"{self.top}/pid", encoding="ascii") as f:
            return int(f.read())

    def end_left(self):
        """Only where a test fails is it still there."""
        with contextlib.suppress(OSError):
            os.kill(self.left(), signal.SIGKILL)

    def check_found(self, run):
        pid = self.left()
        self.assertIn(pid, run.processes())
        with mock.patch.object(proof_leftovers, "LEAVE_S", 0.1), \
                self.assertRaisesRegex(AssertionError, f"left: processes .*{pid}: 'sleep 600'"):
            proof_leftovers.check_processes(run)

    def check_gone(self):
        """And room is made for the next one."""
        if os.path.exists(f"{self.top}/pid"):
            self.assertNotIn(self.left(), run_processes.living())
            os.unlink(f"{self.top}/pid")

    def runs(self):
        """One on hosts with networks of their own, if this machine allows that, and one without."""
        for environment in ({}, {"MUSTER_LAB_LOOPBACK": "1"}):
            with mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(io.StringIO()), \
                    FaultRun(scenario_of("hosts: 2\njob: --nnodes=2\n"), self.top, 1) as run:
                yield run
            self.check_gone()

    def test_what_a_launcher_has_left_is_found_and_ended_with_the_run(self):
        for run in self.runs():
            launch = run.lab.start(run.hosts["n2"], [self.leave()])
            launch.await_exit(3, 10)
            self.check_found(run)
            self.assertEqual([self.left() in run.processes(name) for name in ("n1", "n2")], [False, run.lab.real])

    def test_what_the_undisturbed_run_has_left_is_found_and_ended_with_the_run(self):
        self.leave()
        self.script("muster", f"exec {self.top}/leave")
        for run in self.runs():
            run.scenario.program[:] = ["ddp_mnist"]
            with self.assertRaisesRegex(AssertionError, "the undisturbed run failed"):
                proof_state.train_undisturbed(run, 1, run.folder)
            self.check_found(run)

    def test_what_a_host_of_a_killed_run_has_left_is_ended_by_the_next(self):
        leave, namespace = self.leave(), f"mns{os.getpid()}z-1"
        with RunRegistry(self.registry) as registry:
            registry.note("namespace", namespace)
            if subprocess.run(["ip", "netns", "add", namespace], capture_output=True, check=False).returncode != 0:
                self.skipTest("needs network namespaces")
            subprocess.run(["ip", "netns", "exec", namespace, leave], check=False)
            self.assertEqual(processes_in(namespace), [self.left()])
        self.check_gone()
        self.assertFalse(os.path.exists(f"/run/netns/{namespace}"))

    def test_what_writes_into_the_folder_of_a_killed_run_is_ended_by_the_next(self):
        os.mkdir(self.lab)
        subprocess.run([self.leave(f"{self.lab}/n1-0.txt")], check=False)
        self.assertEqual(processes_of(self.lab), [self.left()])
        with RunRegistry(self.registry) as registry:
            registry.note("processes", self.lab)
        self.check_gone()

    def test_who_looks_on_is_not_of_the_run_nor_is_what_was_there_before(self):
        before = subprocess.Popen(["sleep", "600"], start_new_session=True)
        self.addCleanup(before.wait)
        self.addCleanup(before.kill)
        for run in self.runs():
            with open(f"{run.folder}/said", "w", encoding="ascii"):
                pass
            with subprocess.Popen(["tail", "-f", "said"], cwd=run.folder, stdout=subprocess.DEVNULL) as onlooker:
                try:
                    proof_leftovers.check_processes(run)
                finally:
                    onlooker.kill()
        self.assertIsNone(before.poll())

    def test_this_machines_own_network_is_no_hosts(self):
        with mock.patch.object(run_processes, "network_of", lambda path: (1, 2)):
            self.assertEqual(processes_in("mns1a-1"), [])

    def test_the_end_of_an_adopted_process_is_taken_note_of_and_that_of_a_launcher_kept(self):
        for run in self.runs():
            host = run.hosts["n1"]
            ended = run.lab.start(host, ["sh", "-c", "setsid sleep 0.05 & exit 4"])
            while not (zombies := [pid for pid, one in run_processes.statuses().items()
                                   if one.state == "Z" and one.parent == os.getpid() and pid != ended.process.pid]):
                time.sleep(0.01)
            run.lab.start(host, ["true"])
            self.assertFalse(run_processes.statuses().keys() & set(zombies))
            self.assertEqual(ended.process.wait(10), 4)


class Leftovers(InOwnFolder):
    def before(self):
        return machine_memory.files(), machine_memory.segments()

    def test_a_segment_of_a_process_that_has_ended_is_found(self):
        before = self.before()
        number = int(subprocess.run([sys.executable, "-c", NEW_SEGMENT], check=True, capture_output=True).stdout)
        try:
            found = machine_memory.segments_left_since(before)
            self.assertTrue(any(f"segment {number} of" in phrase for phrase in found), found)
            for real in (True, False):
                lab = types.SimpleNamespace(real=real, shared_memory=self.top)
                with self.assertRaisesRegex(AssertionError, f"segment {number} of"):
                    check_shared_memory(types.SimpleNamespace(lab=lab, before=before))
        finally:
            ctypes.CDLL(None).shmctl(number, REMOVE_SEGMENT, None)

    def test_a_new_file_in_shared_memory_is_found_unless_somebody_holds_it(self):
        before, name = self.before(), f"muster-test-{os.getpid()}"
        path = f"{machine_memory.SHARED_MEMORY}/{name}"
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        with open(path, "w", encoding="ascii"):
            self.assertNotIn(path, machine_memory.left_since(before))
        self.assertIn(path, machine_memory.left_since(before))
        self.assertNotIn(path, machine_memory.left_since(self.before()))

    def test_the_daemons_port_is_looked_at_on_this_machines_own_network_too(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            run = types.SimpleNamespace(lab=types.SimpleNamespace(real=False, port=listener.getsockname()[1]))
            with self.assertRaisesRegex(AssertionError, f"port {run.lab.port}"):
                check_ports(run)
        check_ports(run)

    def test_the_library_that_changes_the_clock_leaves_nothing_on_this_machine(self):
        if not os.path.exists(host_setup.FAKETIME):
            self.skipTest("needs the package faketime")
        for environment in ({}, {"MUSTER_LAB_LOOPBACK": "1"}):
            with mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(io.StringIO()), \
                    FaultRun(scenario_of("hosts: 1\nclock: n1 +15m\n"), self.top, 1) as run:
                launch = run.lab.start(run.hosts["n1"], [*run.setup.within("n1"), sys.executable, "-c", TELL_AND_DIE])
                launch.process.wait(10)
                self.assertAlmostEqual(int(launch.output()) - time.time(), 900, delta=30)
            self.assertNotIn(f"faketime_shm_{launch.process.pid}", machine_memory.files())

    def test_the_undisturbed_run_is_a_part_of_the_run(self):
        """Should the harness be killed meanwhile, the next one finds its folder and its processes."""
        for name, text in (("muster", f'echo "$@" "${MARK}"; exit 3'), ("ddp_mnist", "")):
            with open(f"{self.top}/{name}", "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\n{text}\n")
            os.chmod(f"{self.top}/{name}", 0o755)
        scenario = parse("x.scenario", "hosts: 1\nprogram: ddp_mnist\n\nwait 1s\n")
        run = types.SimpleNamespace(scenario=scenario, bin=self.top, folder=f"{self.top}/run", filled=list, python="python3")
        os.mkdir(run.folder)
        with self.assertRaisesRegex(AssertionError, f"--export={run.folder}/reference-.* {run.folder}\n"):
            proof_state.undisturbed(run)
        self.assertEqual(os.listdir(run.folder), [])


class References(InOwnFolder):
    def test_they_are_kept_in_a_folder_of_ones_own_where_that_of_the_programs_cannot_be_written(self):
        with mock.patch.object(tempfile, "tempdir", self.top):
            self.assertIsNone(references.find("/proc/self/bin", "key"))
            references.keep("/proc/self/bin", "key", {"loss": 1.5})
            self.assertEqual(references.find("/proc/self/bin", "key"), {"loss": 1.5})
            with open(f"{self.top}/muster-fault-references-{os.geteuid()}/key.json", encoding="utf-8") as f:
                self.assertEqual(json.load(f), {"loss": 1.5})

    def test_a_folder_that_somebody_else_made_under_ones_name_is_not_used(self):
        with mock.patch.object(tempfile, "tempdir", self.top):
            references.keep("/proc/self/bin", "key", {"loss": 1.5})
            with mock.patch.object(references, "is_ours_to_use", lambda folder: False):
                self.assertIsNone(references.find("/proc/self/bin", "key"))

    def test_the_first_choice_is_beside_the_programs(self):
        references.keep(f"{self.top}/bin", "key", {"loss": 1.5})
        self.assertEqual(os.listdir(f"{self.top}/fault-references"), ["key.json"])


if __name__ == "__main__":
    unittest.main()
