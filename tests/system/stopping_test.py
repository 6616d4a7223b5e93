"""How workers are told that they have to end, as docs/workers.md promises it: stopping_test.py BIN_DIR CASE."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time

from jobs import LIMIT_S, await_that, run_named

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/workers.md")
HEADING = "### A worker that saves and leaves on SIGTERM"

# Learns of the wish to save by its channel, and says when it hears a signal.
LISTENER = """
import os, signal, sys, time
import muster_worker
signal.signal(signal.SIGTERM, lambda *_: print("SIGTERM came", flush=True))
worker = muster_worker.join()
print("ready", worker.rank, flush=True)
for step in range(1, 100000):
    time.sleep(0.01)
    worker.progress(step)
    if worker.asked_to_save():
        if sys.argv[1] != "never":
            open(sys.argv[1] + os.environ["RANK"], "w").write(str(step))
            worker.drained(step)
"""


def sample():
    with open(PAGE) as f:
        page = f.read()
    return re.search(r"```python\n(.*?)```", page[page.index(HEADING):], re.DOTALL).group(1)


def case_F3_the_documented_sample_saves_once_and_goes_on_from_there(job):
    program = ["python3", job.write("save_on_term.py", sample()), job.path("checkpoint")]
    job.start(["--nproc-per-node=2"], program)
    await_that(lambda: job.output().count("step 20\n") == 2, job.output)
    job.process.send_signal(signal.SIGTERM)
    job.await_exit(143)
    with open(job.path("checkpoint")) as f:
        saved = int(f.read())
    assert saved > 20, saved
    assert job.status()["reason"] == "preempted"
    assert all(worker["exit"] == 0 and worker["ended_by"] == "muster" for worker in job.status()["workers"])

    job.start(["--nproc-per-node=2"], program)
    job.await_output("step ")
    job.process.send_signal(signal.SIGTERM)
    job.await_exit(143)
    assert re.search(r"step (\d+)", job.output()).group(1) == str(saved), job.output()


def case_F4_workers_that_listen_save_and_get_no_signal(job):
    job.start(["--nproc-per-node=2"], ["python3", job.write("listener.py", LISTENER), job.path("saved-")])
    await_that(lambda: job.output().count("ready") == 2, job.output)
    job.process.send_signal(signal.SIGTERM)
    job.await_exit(143)
    assert "2 workers asked to save" in job.output(), job.output()
    assert "SIGTERM came\n" not in job.output().replace("muster: SIGTERM came", ""), job.output()
    assert os.path.exists(job.path("saved-0")) and os.path.exists(job.path("saved-1"))


def case_F4_who_is_asked_and_does_not_save_gets_the_signal_in_time(job):
    job.start(["--nproc-per-node=1", "--stop-grace=2"], ["python3", job.write("listener.py", LISTENER), "never"])
    job.await_output("ready 0")
    job.process.send_signal(signal.SIGTERM)
    job.await_exit(143)
    assert re.search(r"^SIGTERM came$", job.output(), re.MULTILINE), job.output()
    assert job.status()["workers"][0]["signal"] == "SIGKILL"


def case_F5_a_program_under_a_shell_that_does_not_exec_saves_too(job):
    wrapper = job.write("wrapper.sh", '#!/bin/sh\n"$@"\necho "the shell goes on"\n')
    os.chmod(wrapper, 0o755)
    program = [wrapper, "python3", job.write("save_on_term.py", sample()), job.path("checkpoint")]
    for number in (signal.SIGTERM, signal.SIGHUP):
        if os.path.exists(job.path("checkpoint")):
            os.remove(job.path("checkpoint"))
        text = sample().replace("signal.SIGTERM", f"signal.{number.name}")
        job.write("save_on_term.py", text)
        job.start(["--nproc-per-node=1"], program)
        job.await_output("step 5\n")
        job.process.send_signal(number)
        job.await_exit(128 + number)
        assert os.path.exists(job.path("checkpoint")), f"{number.name}: {job.output()}"


def case_F5_a_ctrl_c_reaches_the_program_under_a_shell(job):
    wrapper = job.write("wrapper.sh", '#!/bin/bash\n"$@"\necho "the shell goes on"\n')
    os.chmod(wrapper, 0o755)
    text = sample().replace("signal.SIGTERM", "signal.SIGINT")
    job.start(["--nproc-per-node=1"], [wrapper, "python3", job.write("save_on_int.py", text), job.path("checkpoint")])
    job.await_output("step 5\n")
    job.process.send_signal(signal.SIGINT)
    job.await_exit(130)
    assert os.path.exists(job.path("checkpoint")), job.output()


def case_F10_a_warning_signal_ends_nobody(job):
    text = ("import signal, time\nsignal.signal(signal.SIGUSR1, lambda *_: (print('warned', flush=True), exit(0)))\n"
            "print('ready', flush=True)\nfor _ in range(600): time.sleep(0.1)\n")
    job.start(["--nproc-per-node=1"], ["python3", job.write("warned.py", text)])
    job.await_output("ready")
    job.process.send_signal(signal.SIGUSR2)
    job.await_output("SIGUSR2 came: not passed on to 1 worker without a handler for it")
    job.process.send_signal(signal.SIGUSR1)
    job.await_exit(0)
    assert "SIGUSR1 came: passed on to 1 worker; the job goes on" in job.output(), job.output()
    assert "warned" in job.output()


def case_F2_the_grace_may_come_from_torchruns_variable(job):
    text = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(600)\n"
    job.start(["--nproc-per-node=1"], ["python3", job.write("deaf.py", text)], {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "1"})
    job.await_output("ready")
    job.process.send_signal(signal.SIGTERM)
    job.await_exit(143)
    assert "did not end within 1 s" in job.output(), job.output()


def case_F2_a_signal_during_the_stop_of_a_restart_has_its_whole_grace(job):
    text = ("import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "open(sys.argv[1] + os.environ['RANK'], 'w').close()\n"
            "while not all(os.path.exists(sys.argv[1] + r) for r in '01'): time.sleep(0.01)\n"
            "if os.environ['RANK'] == '0': sys.exit(1)\ntime.sleep(600)\n")
    job.start(["--nproc-per-node=2", "--max-restarts=3", "--restart-grace=2", "--stop-grace=4"],
              ["python3", job.write("deaf.py", text), job.path("there-")])
    job.await_output("stopping the other worker here")
    job.process.send_signal(signal.SIGTERM)
    job.await_exit(143)
    assert "; 4 s to leave" in job.output() and "did not end within 4 s" in job.output(), job.output()
    assert "rank 1 had to be killed after the grace of 4 s" in job.output(), job.output()


def check_last_words(job, code, kind):
    """That it left with this code, by itself, and has said all."""
    job.await_exit(code)
    assert job.output().splitlines()[-1].startswith(f"muster: job job {kind}"), job.output()
    assert job.status()["exit_code"] == code
    assert os.listdir(job.path("logs/job")).count("status.json") == len([n for n in os.listdir(job.path("logs/job")) if "json" in n])


def case_F7_a_second_signal_at_any_moment_costs_no_last_words(job):
    for number, kind in ((signal.SIGTERM, "preempted"), (signal.SIGINT, "ended")):
        for ms in range(0, 20, 2):
            shutil.rmtree(job.path("logs"), ignore_errors=True)
            job.start(["--nproc-per-node=1"], ["sh", "-c", "echo ready; exec sleep 600"])
            job.await_output("ready")
            job.process.send_signal(number)
            time.sleep(ms / 1000)  # the moment
            job.process.send_signal(number)
            check_last_words(job, 128 + number, kind)


def case_F7_a_second_signal_while_others_are_waited_for_costs_no_last_words(job):
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{port.getsockname()[1]}"
    for ms in range(0, 20, 4):
        shutil.rmtree(job.path("logs"), ignore_errors=True)
        job.start(["--nnodes=2", "--node-id=a", f"--rdzv-endpoint={where}", f"--log-dir={job.path('logs')}/{{job}}/{{node}}/.."], ["sleep", "600"])
        job.await_output("waiting for")
        job.process.send_signal(signal.SIGTERM)
        time.sleep(ms / 1000)  # the moment
        job.process.send_signal(signal.SIGTERM)
        job.await_exit(143)
        assert "preempted" in job.output().splitlines()[-1], job.output()


class Unread:
    """A muster whose output nobody reads yet, after a failure whose report waits for a reader."""

    def __init__(self, job):
        program = job.write("loud.py", "import sys\nsys.stderr.write(('x' * 69 + '\\n') * 2000)\nsys.exit(3)\n")
        job.process = subprocess.Popen([os.path.join(job.bin, "muster"), "--rdzv-id=job", f"--log-dir={job.path('logs')}", "-r2", "-t2",
                                        "python3", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        await_that(lambda: os.path.exists(job.path("logs/job/status.json")), "the status file")
        self.process = job.process

    def still_waits(self, seconds):
        try:
            self.process.wait(seconds)
            return False
        except subprocess.TimeoutExpired:
            return True


def case_a_reader_that_pauses_at_the_end_has_the_last_screen(job):
    unread = Unread(job)
    assert unread.still_waits(4)
    output = unread.process.stdout.read().decode()
    assert unread.process.wait(LIMIT_S) == 3
    assert "FAILED: rank 0" in output and output.splitlines()[-1].startswith("  what to do"), output[-1000:]
    assert output.count("x" * 69 + "\n") == 2000 + 16, output.count("x" * 69 + "\n")
    assert job.status()["lost_console_lines"] == 0


def case_a_signal_ends_the_wait_for_the_reader_and_not_the_exit_code(job):
    unread = Unread(job)
    unread.process.send_signal(signal.SIGUSR1)
    assert unread.still_waits(0.5), "a warning shortens nothing"
    unread.process.send_signal(signal.SIGTERM)
    assert unread.process.wait(10) == 3
    assert job.status()["lost_console_lines"] > 0
    assert job.status()["exit_code"] == 3
    unread.process.stdout.close()


def case_G3_it_ends_with_the_process_that_started_it(job):
    parent = job.write("parent.py", "import subprocess, sys\nsubprocess.run(sys.argv[1:])\n")
    worker = job.write("worker.py", "import os, time\nprint('pid', os.getpid(), os.getppid(), flush=True)\ntime.sleep(600)\n")
    muster = [os.path.join(job.bin, "muster"), "--die-with-parent", "--nproc-per-node=2", f"--log-dir={job.path('logs')}"]
    with open(job.path("output"), "wb") as output:
        job.process = subprocess.Popen(["python3", parent, *muster, "python3", worker], stdout=output, stderr=output)
    await_that(lambda: len(re.findall(r"^pid", job.output(), re.MULTILINE)) == 2, job.output)
    pids = {int(pid) for line in re.findall(r"^pid (\d+) (\d+)$", job.output(), re.MULTILINE) for pid in line}
    assert len(pids) == 3, pids
    job.process.kill()
    job.process.wait()
    await_that(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), f"{pids} are gone", 10)
    told = "stopped by SIGTERM, since the process that started muster has ended (--die-with-parent)"
    await_that(lambda: told in job.output(), job.output, 10)


if __name__ == "__main__":
    run_named(globals())
