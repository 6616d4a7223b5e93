"""Tests of what a user of scripts/chaos sees: what is refused and how, how it ends, what is left out.

usage: chaos_unit_test.py [TEST]
"""

import contextlib
import glob
import io
import os
import random
import re
import shlex
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
import chaos  # noqa: E402
import injector  # noqa: E402
import jobs  # noqa: E402
import machine_memory  # noqa: E402
import multi_node  # noqa: E402
import network_actions  # noqa: E402
import run_registry  # noqa: E402
import soak  # noqa: E402
import torch_probe  # noqa: E402
from program_folder import NEEDED, check_temporary_folder, command_again  # noqa: E402
from scenario_text import parse  # noqa: E402
from sentences import SENTENCES  # noqa: E402

CHAOS = os.path.normpath(f"{HERE}/../../scripts/chaos")
IDLE = "hosts: 2\nstart: none\njob: --nnodes=2\nprogram: child\n\nwait 60s\n"


def fake_run(real, disk):
    text = f"hosts: 2\njob: --nnodes=2\n{disk}program: ddp_mnist\n\nwait 1s\n"
    return types.SimpleNamespace(lab=types.SimpleNamespace(real=real), scenario=parse("x.scenario", text), hosts={})


class Faults(unittest.TestCase):
    def test_what_needs_a_network_of_each_hosts_own_is_not_chosen_without_one(self):
        possible = injector.Injector(fake_run(False, "disk: checkpoint 1M\n"), random.Random(1), 3)
        self.assertEqual(list(possible.left_out), ["needs a network for each host"])
        self.assertIn("host cut off", possible.left_out["needs a network for each host"])
        self.assertEqual(injector.possible_faults(fake_run(True, "disk: checkpoint 1M\n")), (list(injector.FAULTS), {}))
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            soak.say_left_out(possible)
        self.assertRegex(told.getvalue(), r"^soak: left out: host cut off, .*\(needs a network for each host\)\n$")

    def test_a_disk_that_cannot_be_mounted_is_not_filled(self):
        possible, left_out = injector.possible_faults(fake_run(True, ""))
        self.assertEqual(left_out, {"needs to mount a tmpfs": ["disk full"]})
        self.assertNotIn("disk full", [kind for _, kind, *_ in possible])

    def test_every_third_fault_at_least_ends_a_round_from_the_first_one_on_and_none_is_long_in_coming(self):
        kinds = {text.format(host="n1"): kind for _, kind, text, *_ in injector.FAULTS}
        chance = injector.Injector(fake_run(True, "disk: checkpoint 1M\n"), random.Random(5), 3)
        said, began = [], time.monotonic()
        with mock.patch.object(chance, "_choose_host", lambda: "n1"), mock.patch.object(chance, "_possible", lambda _: True), \
                mock.patch.object(chance, "_say", lambda text, is_fault=False: said.append((now, text, is_fault)) or True):
            chance._run.down = {}
            for tick in range(30_000):
                now = began + tick * 0.1
                chance.step(now)
        faults = [(when, kinds[text]) for when, text, is_fault in said if is_fault]
        ends = [kind in injector.ENDING for _, kind in faults]
        self.assertGreater(len(faults), 600)
        self.assertTrue(ends[0])
        self.assertTrue(all(any(ends[i:i + 3]) for i in range(len(ends) - 2)))
        self.assertFalse(all(ends))
        # One that is still broken cannot be broken again: then it takes a moment more.
        self.assertLess(max(later - sooner for (sooner, _), (later, _) in zip(faults, faults[1:])), 6 + 0.2 + 6)

    def test_no_sentence_breaks_the_network_of_this_machine(self):
        needing = [known for known in SENTENCES if known.needs_network]
        self.assertGreaterEqual(len(needing), 10)
        for known in needing:
            with self.assertRaisesRegex(AssertionError, "this machine's own"):
                known.act(fake_run(False, ""), *known.pattern.split()[:0])
        with self.assertRaisesRegex(AssertionError, "this machine's own"):
            network_actions.reconnect(fake_run(False, ""), ("n1",))


class Words(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="muster-chaos-")
        self.addCleanup(top.cleanup)
        self.top, self.bin = top.name, f"{top.name}/bin"
        os.mkdir(self.bin)

    def write(self, name, text, mode=0o644):
        with open(f"{self.top}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(f"{self.top}/{name}", mode)

    def write_programs(self):
        for name in NEEDED:
            self.write(f"bin/{name}", "#!/bin/sh\n", 0o755)

    def write_trainer(self):
        self.write("bin/ddp_mnist", "#!/bin/sh\n", 0o755)

    def assert_nothing_is_noted(self, pid):
        """In the registry, of what the run of that process has made."""
        self.assertEqual([name for name in os.listdir(run_registry.registry_folder()) if name.startswith(f"{pid}-")], [])

    def call(self, *words):
        """In the top folder, with paths that are relative to it."""
        return subprocess.run([CHAOS, *words], cwd=self.top, capture_output=True, text=True, check=False, timeout=50)

    def refuse(self, words, *parts):
        done = self.call(*shlex.split(words))
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_what_cannot_be_done_is_refused_in_one_sentence(self):
        self.write("wrong.scenario", "hosts: 2\nprogram: child\n\nsned x\n")
        self.write("nodes.scenario", "hosts: 2\njob: --nnodes=some\nprogram: child\n\nwait 1s\n")
        self.write_programs()
        for minutes in ("0", "-1", "nan", "inf", "many"):
            self.refuse(f"--minutes {minutes}", "--minutes", f"'{minutes}' is no number above 0")
        self.refuse("--minutes 1 --every 0", "--every")
        self.refuse("--minutes 1 --bin nowhere", "nowhere", "no muster")
        self.refuse("--minutes 1 --bin bin", "no ddp_mnist and no fsdp_mlp")
        self.refuse("--minutes 1 --bin bin --torch nowhere", "there is no interpreter nowhere")
        self.refuse("play --bin bin wrong.scenario", "wrong.scenario:4", "no such sentence")
        self.refuse("play --bin bin nodes.scenario", "nodes.scenario", "some")
        self.refuse("play --bin bin no_such", "no_such", "scripts/chaos list")
        self.refuse("play --bin bin --minutes=3 x", "play takes no --minutes")
        self.refuse("plya", "unknown word 'plya'")

    def call_each(self, words, variables):
        """Each program that can be called, with these words and variables."""
        for program in ([CHAOS], *([sys.executable, f"{HERE}/{name}.py"] for name in ("play", "soak", "side_by_side"))):
            yield subprocess.run([*program, *words], cwd=self.top, env={**os.environ, **variables}, capture_output=True,
                                 text=True, check=False, timeout=50)

    def test_an_interpreter_that_leaves_out_assertions_is_refused_since_everything_would_hold(self):
        for level in "12":
            for done in self.call_each(["list"], {"PYTHONOPTIMIZE": level}):
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
                self.assertIn("unset PYTHONOPTIMIZE", done.stderr)

    def test_modules_are_found_where_python_leaves_out_the_programs_own_folder(self):
        for done in self.call_each(["--help"], {"PYTHONSAFEPATH": "1"}):
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_comparison_that_cannot_begin_is_refused_in_one_sentence_before_anything_is_built(self):
        self.write_programs()
        with mock.patch.dict(os.environ, {"MUSTER_TORCH_PYTHON": ""}):
            for only in ("foo", "worker killed,foo", "agent killed,"):
                word = only.split(",")[-1]
                self.refuse(f"torchrun --only '{only}' --bin bin", f"--only: no case has '{word}' in its name; there are: "
                            "worker killed; agent killed; ", "worker fails once, with grandchildren\n")
            for words in ("torchrun --bin bin", "torchrun --bin bin --only killed", "torchrun --only 'SIGTERM,node joins'"):
                self.refuse(words, "chaos: --torch or MUSTER_TORCH_PYTHON has to name a Python with PyTorch")
            done = subprocess.run([sys.executable, f"{HERE}/side_by_side.py", "bin", "--only=foo"], cwd=self.top, text=True,
                                  capture_output=True, check=False, timeout=50)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)

    def test_an_option_that_is_cut_short_is_no_option(self):
        for words in ("--min 1", "--minutes 1 --see 3", "play x --se 3", "torchrun --to python"):
            self.refuse(f"{words} --bin bin", "unrecognized arguments: --")
        for words in ("play.py bin x --see 3", "soak.py bin --min 1", "side_by_side.py bin --onl killed",
                      "step_worker.py . --step 3"):
            name, *rest = words.split()
            done = subprocess.run([sys.executable, f"{HERE}/{name}", *rest], cwd=self.top, capture_output=True, text=True,
                                  check=False, timeout=50)
            self.assertEqual((done.returncode, done.stdout), (2, ""), f"{words}: {done.stderr}")
            self.assertIn(f"unrecognized arguments: {rest[-2]}", done.stderr)

    def test_no_program_of_the_harness_takes_options_that_are_cut_short(self):
        for path in glob.glob(f"{glob.escape(HERE)}/*.py"):
            with open(path, encoding="utf-8") as f:
                makes = re.findall(r"= argparse\.ArgumentParser\((.*)\)$", f.read(), re.MULTILINE)
            self.assertEqual([settings for settings in makes if "allow_abbrev=False" not in settings], [], path)

    def test_a_temporary_folder_with_a_name_that_breaks_a_run_is_refused_before_anything_is_made(self):
        self.write("idle.scenario", IDLE.replace("wait 60s", "wait 1ms"))
        self.write_programs()
        self.write_trainer()
        for name, why in ((b"two\nlines", "line break"), (b"two\rlines", "line break"), (b"\xff", "not UTF-8"),
                          (b"${x}", "it has a $ in its name"), (b"{x}", "it has a { in its name"),
                          (b"x,y", "it has a , in its name")):
            folder = os.path.join(self.top.encode(), name)
            os.mkdir(folder)
            for words in ([CHAOS, "play", "--bin", "bin", "idle.scenario"], [CHAOS, "--minutes", "1", "--bin", "bin"],
                          [sys.executable, f"{HERE}/play.py", self.bin, "idle.scenario", "--full"],
                          [sys.executable, f"{HERE}/soak.py", self.bin]):
                done = subprocess.run(words, cwd=self.top, env={**os.environb, b"TMPDIR": folder}, capture_output=True,
                                      text=True, check=False, timeout=50)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
                self.assertIn(why, done.stderr)
                self.assertEqual(os.listdir(folder), [])

    def test_no_pattern_of_names_is_made_of_a_folder_as_it_is(self):
        for top in (HERE, f"{HERE}/../system", f"{HERE}/../support"):
            for path in glob.glob(f"{glob.escape(top)}/*.py"):
                with open(path, encoding="utf-8") as f:
                    made = re.findall(r"glob\.i?glob\((.*)", f.read())
                loose = [words for words in made if not words.startswith("f\"{glob.escape(")]
                self.assertEqual(loose, [], path)

    def test_a_temporary_folder_in_shared_memory_is_refused_since_each_host_has_its_own(self):
        shared, link = f"{self.top}/shm", f"{self.top}/link"
        os.makedirs(f"{shared}/below")
        os.mkdir(f"{self.top}/shm-not")
        os.symlink(f"{shared}/below", link)
        with mock.patch.object(machine_memory, "SHARED_MEMORY", shared):
            for folder in (shared, f"{shared}/below", link):
                told = io.StringIO()
                with mock.patch.object(tempfile, "tempdir", folder), contextlib.redirect_stderr(told), \
                        self.assertRaises(SystemExit) as caught:
                    check_temporary_folder()
                self.assertEqual((caught.exception.code, told.getvalue()), (2, (
                    f"chaos: the temporary folder '{folder}' cannot be used: it is in {shared}, of which each host has one of "
                    "its own; set TMPDIR to another one\n")))
            with mock.patch.object(tempfile, "tempdir", f"{self.top}/shm-not"):
                check_temporary_folder()

    def test_a_temporary_folder_may_have_spaces_and_letters_of_any_language(self):
        self.write("fails.scenario", IDLE.replace("wait 60s", "wait 1ms\nexpect a failed checkpoint"))
        self.write_programs()
        folder = f"{self.top}/été x \\n"
        os.mkdir(folder)
        done = subprocess.run([CHAOS, "play", "--bin", "bin", "fails.scenario"], cwd=self.top, check=False, timeout=50,
                              env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True)
        kept = done.stdout.split("all logs are kept in ")[1].split("\n")[0]
        self.assertEqual((done.returncode, os.path.dirname(kept), os.listdir(folder)),
                         (1, folder, [os.path.basename(kept)]), done.stderr)

    def write_interpreter(self, text):
        self.write("bin/python", f"#!/bin/sh\n{text}\n", 0o755)
        return f"{self.bin}/python"

    def test_an_interpreter_without_pytorch_is_refused_before_anything_is_built_or_begun(self):
        for text, why in (("echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1", "No module named 'torch'"),
                          ("exit 0", "it says nothing"), ("kill -9 $$", "exit code -9"),
                          ("echo PyTorch 9.1 without", "its PyTorch 9.1 has no Gloo")):
            self.write_interpreter(text)
            self.refuse("--minutes 1 --torch bin/python", f"--torch {self.bin}/python", why)
        self.write_programs()
        self.refuse("torchrun --bin bin --torch bin/python", "has no Gloo")
        self.write("bin/python", "no program", 0o755)
        self.refuse("--minutes 1 --torch bin/python", "Exec format error")

    def test_an_interpreter_that_does_not_end_is_refused_in_time_and_ended_with_all_that_it_started(self):
        python = self.write_interpreter(f"echo $$ > {self.top}/pid; sleep 600 & wait")
        told = io.StringIO()
        with contextlib.redirect_stderr(told), self.assertRaises(SystemExit) as caught:
            torch_probe.torch_version(python, limit_s=1)
        self.assertEqual(caught.exception.code, 2)
        self.assertEqual(told.getvalue(), f"chaos: --torch {python}: it has not imported torch within 1 s\n")
        with open(f"{self.top}/pid", encoding="ascii") as f, self.assertRaises(ProcessLookupError):
            group = int(f.read())
            for _ in range(1000):  # until whoever adopted the sleeper has seen its end
                os.killpg(group, 0)
                time.sleep(0.01)

    def test_warnings_of_pytorch_do_not_matter(self):
        python = self.write_interpreter("echo old card >&2; echo PyTorch 9.1 with; echo bye >&2")
        self.assertEqual(torch_probe.torch_version(python), "9.1")

    def test_what_the_user_has_set_for_jobs_reaches_none_that_is_tried(self):
        show = f"#!/bin/sh\nenv >> {shlex.quote(self.top)}/seen\n"
        for name in NEEDED:
            self.write(f"bin/{name}", show, 0o755)
        self.write_trainer()
        self.write("bin/python", f"{show}echo PyTorch 9.1 with\n", 0o755)
        self.write("one.scenario", IDLE.replace("wait 60s", "start n1\nexpect exit 0 of n1"))
        settings = {"MUSTER_TOKEN_FILE": "/nowhere", "MUSTER_CONFIG": "/nowhere", "PET_MODULE": "1", "SLURM_NTASKS": "9",
                    "GLOO_SOCKET_IFNAME": "no0", "NCCL_DEBUG": "INFO", "TORCHELASTIC_RUN_ID": "x", "TORCH_LOGS": "x",
                    "MASTER_ADDR": "nowhere", "MASTER_PORT": "1", "RANK": "7", "WORLD_SIZE": "8", "LOCAL_RANK": "7",
                    "GROUP_RANK": "7", "LOCAL_WORLD_SIZE": "8", "OMP_PROC_BIND": "true"}
        for words in ([CHAOS, "play", "--bin", "bin", "one.scenario"],
                      [sys.executable, f"{HERE}/play.py", "bin", "one.scenario", "--full"],
                      [sys.executable, f"{HERE}/soak.py", "bin", "--only", "ddp_mnist"],
                      [sys.executable, f"{HERE}/side_by_side.py", "bin", "--torch", "bin/python", "--only", "worker killed"]):
            done = subprocess.run(words, cwd=self.top, env={**os.environ, **settings, "TMPDIR": self.top, "MUSTER_AGENT": "us"},
                                  capture_output=True, text=True, check=False, timeout=50)
            with open(f"{self.top}/seen", encoding="utf-8") as f:
                names = {line.partition("=")[0] for line in f}
            os.unlink(f"{self.top}/seen")
            self.assertLessEqual({"MUSTER_LAB_RUN", "MUSTER_AGENT"}, names, done.stdout + done.stderr)
            self.assertFalse(names.intersection(settings), words)

    def test_nor_does_it_reach_the_jobs_of_the_tests_of_the_system(self):
        seen = []

        def see(place):
            seen.append(set(os.environ) & {"GLOO_SOCKET_IFNAME", "RANK", "PET_MODULE", "MUSTER_SANITIZER"})
        for run, place in ((multi_node.main, "multi_node.Lab"), (jobs.run_named, "jobs.Job")):
            settings = {"GLOO_SOCKET_IFNAME": "no0", "RANK": "7", "PET_MODULE": "1", "MUSTER_SANITIZER": "address"}
            before = signal.getsignal(signal.SIGTERM)
            with mock.patch(place), mock.patch.dict(os.environ, settings), mock.patch.object(sys, "argv", ["x", "bin", "see"]):
                run({"scenario_see": see, "case_see": see})
            signal.signal(signal.SIGTERM, before)
        self.assertEqual(seen, 2 * [{"MUSTER_SANITIZER"}])

    def test_play_itself_says_the_sentence_only_too(self):
        self.write("wrong.scenario", "hosts: 2\nprogram: child\n\nsned x\n")
        for path in ("wrong.scenario", "no_such"):
            done = subprocess.run([sys.executable, f"{HERE}/play.py", self.bin, path], cwd=self.top, text=True,
                                  capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)

    def test_an_option_may_have_its_value_behind_an_equals_sign(self):
        self.assertEqual(chaos.read_words(["--minutes=2", "--seed=3"]), ("soak", [], {"minutes": "2", "seed": 3}))
        self.assertEqual(chaos.read_words(["play", "a", "--seed", "3", "b"]), ("play", ["a", "b"], {"seed": 3}))

    def test_whoever_reads_the_list_may_stop_reading(self):
        done = subprocess.run(["bash", "-c", f"{shlex.quote(CHAOS)} list | head -1"], capture_output=True, check=True)
        self.assertEqual(done.stderr, b"")

    def test_logs_are_kept_when_the_reader_of_the_output_has_gone(self):
        self.write("fails.scenario", IDLE.replace("wait 60s", "wait 1ms\nexpect a failed checkpoint"))
        self.write_programs()
        with subprocess.Popen([CHAOS, "play", "fails.scenario", "--bin", "bin"], cwd=self.top, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": self.top}) as process:
            process.stdout.readline()
            process.stdout.close()
            said = process.stderr.read()
        self.assertEqual(process.returncode, 1, said)
        self.assertNotIn("Traceback", said)
        self.assertIn("chaos: standard output is lost (Broken pipe)", said)
        self.assertTrue(os.path.isdir(said.split("all logs are kept in ")[1].split("\n")[0]), said)
        self.assert_nothing_is_noted(process.pid)

    def test_an_output_that_cannot_be_written_is_told_and_leaves_nothing(self):
        self.write("idle.scenario", IDLE)
        self.write_programs()
        self.write_trainer()
        for redirection, why in (("> /dev/full", "is lost (No space left on device)"), (">&-", "is closed")):
            for words in ("play idle.scenario --bin bin", "list", "--help",
                          "--minutes 1 --bin bin --only ddp_mnist", "clean"):
                done = subprocess.run(["bash", "-c", f"exec {shlex.quote(CHAOS)} {words} {redirection}"], cwd=self.top,
                                      stderr=subprocess.PIPE, text=True, check=False, timeout=50,
                                      env={**os.environ, "TMPDIR": self.top})
                self.assertIn(done.returncode, (1, 2), f"{words}: {done.stderr}")
                self.assertIn(f"standard output {why}", done.stderr)
                self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(sorted(os.listdir(self.top)), ["bin", "idle.scenario"])

    def test_what_cannot_be_said_on_a_closed_standard_error_either_ends_up_in_no_file(self):
        self.write_programs()
        done = subprocess.run(["bash", "-c", f"exec {shlex.quote(CHAOS)} clean <&- >&- 2>&-"], check=False, timeout=50)
        self.assertEqual(done.returncode, 2)
        code = ("import os, standard_output as s\ns.use_standard_output()\n"
                "for n in range(3): assert os.fstat(n)\nprint(os.open('/', os.O_RDONLY) > 2)")
        done = subprocess.run(["bash", "-c", f"exec python3 -c {shlex.quote(code)} <&- 2>&-"], cwd=HERE, text=True,
                              stdout=subprocess.PIPE, check=False, timeout=50)
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"))

    def test_a_strange_file_name_is_quoted_in_the_command_that_plays_it_again(self):
        self.assertEqual(shlex.split(command_again("play", "it's $a"))[1:], ["play", "it's $a"])

    def test_left_out_is_not_failed(self):
        for results, code, said in (([True, "why"], 0, "1 held, 0 failed, 1 left out (why)"),
                                    ([True, False], 1, "1 held, 1 failed, 0 left out\n"),
                                    (["why", "why"], 1, "0 held, 0 failed, 2 left out (why)")):
            told = io.StringIO()
            with contextlib.redirect_stdout(told):
                self.assertEqual(chaos.verdict(results), code)
            self.assertIn(said, told.getvalue())

    def test_what_dead_runs_have_left_is_removed_and_named(self):
        folder = f"{self.top}/muster-lab-left"
        os.mkdir(folder)
        registry = f"{self.top}/registry"
        code = ("import os, sys; sys.path.insert(0, sys.argv[1]); from run_registry import RunRegistry\n"
                "RunRegistry(sys.argv[2]).note('folder', sys.argv[3]); os._exit(1)")
        support = os.path.dirname(run_registry.__file__)
        subprocess.run([sys.executable, "-c", code, support, registry, folder], check=False)
        told = io.StringIO()
        with mock.patch.object(run_registry, "registry_folder", lambda: registry), contextlib.redirect_stdout(told):
            self.assertEqual([chaos.clean(), chaos.clean()], [0, 0])
        self.assertRegex(told.getvalue(), f"removed folder {folder}\n.*has left anything\n")
        self.assertFalse(os.path.exists(folder))

    def test_a_file_of_the_registry_that_is_no_text_stays_and_is_no_all_clear(self):
        registry = f"{self.top}/registry"
        os.mkdir(registry, 0o700)
        with open(f"{registry}/1-0.txt", "wb") as f:
            f.write(b"\xff\xfe\n")
        told, why = io.StringIO(), io.StringIO()
        with mock.patch.object(run_registry, "registry_folder", lambda: registry), contextlib.redirect_stdout(told), \
                contextlib.redirect_stderr(why):
            self.assertEqual(chaos.clean(), 1)
        self.assertEqual(told.getvalue(), f"chaos: 1-0.txt: removed nothing; the file {registry}/1-0.txt stays\n")
        self.assertEqual(why.getvalue().count("not swept"), 1)
        self.assertEqual(os.listdir(registry), ["1-0.txt"])

    def test_a_registry_that_others_can_have_written_is_refused_before_anything_is_removed(self):
        folder, registry = f"{self.top}/muster-lab-1", f"{self.top}/registry"
        os.mkdir(folder)
        os.mkdir(registry)
        self.write("registry/1-0.txt", f"folder\t{folder}\n")
        self.write("idle.scenario", IDLE.replace("wait 60s", "wait 1ms"))
        self.write_programs()
        self.write_trainer()
        os.chmod(registry, 0o777)
        code = (f"import runpy, sys; sys.path[:0] = [{HERE!r}, {os.path.dirname(run_registry.__file__)!r}]\n"
                f"import run_registry; run_registry.registry_folder = lambda: {registry!r}\n"
                "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')")
        for words in ("chaos.py clean", "chaos.py play --bin bin idle.scenario", "chaos.py --minutes 1 --bin bin",
                      "chaos.py torchrun --bin bin", "play.py bin idle.scenario --full", "soak.py bin"):
            name, *rest = words.split()
            done = subprocess.run([sys.executable, "-c", code, f"{HERE}/{name}", *rest], cwd=self.top, capture_output=True,
                                  text=True, check=False, timeout=50)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), f"{words}: {done.stderr}")
            self.assertIn(f"chaos: the registry of runs {registry} is not used: others may write to it", done.stderr)
        self.assertTrue(os.path.isdir(folder))

    def test_cleaning_up_is_not_cut_short_by_a_signal(self):
        code = ("import os, interruption\ninterruption.end_on_signals()\nwith interruption.held_back():\n"
                " os.kill(os.getpid(), 15)\n print('cleaned', flush=True)\nprint('went on')")
        done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (143, "cleaned\n", ""))

    def test_signals_end_it_with_its_logs_and_the_command_but_without_hosts_or_traceback(self):
        self.write("it's idle.scenario", IDLE)
        self.write_programs()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with subprocess.Popen([CHAOS, "play", "it's idle.scenario", "--bin", "bin", "--seed=3"], cwd=self.top,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env={**os.environ, "TMPDIR": self.top}) as process:
                lines = [process.stdout.readline()]
                while "wait 60s" not in lines[-1] and lines[-1]:
                    lines.append(process.stdout.readline())
                process.send_signal(number)
                said = process.stdout.read()
            self.assertEqual(process.returncode, 128 + number, said)
            self.assertIn(f"interrupted by {number.name}", said)
            self.assertNotIn("Traceback", said)
            kept = said.split("all logs are kept in ")[1].split("\n")[0]
            self.assertTrue(os.path.isdir(kept))
            again = shlex.split(said.split("again: ")[1])
            self.assertEqual(again[1:], ["play", "it's idle.scenario", "--seed", "3", "--bin", f"{self.top}/bin"])
            self.assert_nothing_is_noted(process.pid)


if __name__ == "__main__":
    unittest.main()
