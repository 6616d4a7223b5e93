"""When an exit with 0 is a success: finishing_test.py BIN_DIR CASE."""

import os
import re
import signal

from jobs import await_that, run_named

# Joins, does what its first argument says for its rank and round, and leaves with 0 at once.
WORKER = """
import os, signal, sys, time
import muster_worker
worker = muster_worker.join()
rank = os.environ["RANK"]
if sys.argv[1] == "all" or f"rank-{rank}" == sys.argv[1] or worker.round > 1:
    worker.done()
elif sys.argv[1] == "save":
    print("ready", flush=True)
    while not worker.asked_to_save(): time.sleep(0.01)
    worker.drained(7)
elif sys.argv[1] == "sleep":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("ready", flush=True)
    time.sleep(600)
"""


def program(job, who):
    return ["python3", job.write("worker.py", WORKER), who]


def case_H3_who_leaves_without_a_word_has_failed(job):
    job.start(["--nproc-per-node=2", "--expect-done"], program(job, "rank-0"))
    job.await_exit(1)
    assert "exit code 0 counts after done() alone" in job.output(), job.output()
    assert re.search(r"FAILED: rank 1 on \S+ exited with code 0 before it said that it was done; find out why",
                     job.output()), job.output()
    status = job.status()
    assert status["reason"] == "failed" and status["exit_code"] == 1, status
    failure = status["first_failure"]
    assert (failure["rank"], failure["exit"], failure["evidence"]) == (1, 0, "it had not said that it was done"), failure
    assert [worker["rank"] for worker in status["workers"] if "evidence" in worker] == [1], status


def case_H3_without_the_option_exit_code_0_is_a_success(job):
    job.start(["--nproc-per-node=2"], program(job, "rank-0"))
    job.await_exit(0)
    assert "done()" not in job.output(), job.output()


def case_H3_a_shells_0_is_not_its_programs(job):
    """The framework's bug as it is met: somebody between muster and the program loses the code."""
    job.start(["--nproc-per-node=1", "--expect-done"], ["sh", "-c", "python3 -c 'raise SystemExit(3)'; exit 0"])
    job.await_exit(1)


def case_H3_who_says_done_and_leaves_at_once_has_succeeded(job):
    """The word and the end of the process reach the agent by two ways; the end may be seen first."""
    for _ in range(5):
        job.start(["--nproc-per-node=4", "--expect-done"], program(job, "all"))
        job.await_exit(0)


def case_H3_under_a_shell_and_with_virtual_local_ranks_too(job):
    shell = ["sh", "-c", '"$@"; exit 0', "sh"]
    job.start(["--nproc-per-node=2", "--expect-done"], [*shell, *program(job, "all")])
    job.await_exit(0)
    for _ in range(3):
        job.start(["--nproc-per-node=2", "--expect-done", "--virtual-local-rank"], program(job, "all"),
                  {"CUDA_VISIBLE_DEVICES": "0,1"})
        job.await_exit(0)


def case_H3_a_restart_makes_it_good(job):
    job.start(["--nproc-per-node=1", "--max-restarts=1"], program(job, "nobody"), {"MUSTER_EXPECT_DONE": "1"})
    job.await_exit(0)
    assert "succeeded after 1 restart" in job.output(), job.output()
    assert job.status()["restarts"] == ["rank 0 (exit 0)"], job.status()["restarts"]


def case_H3_who_was_told_to_stop_may_leave(job):
    for who in ("save", "sleep"):
        job.start(["--nproc-per-node=2", "--expect-done", "--stop-grace=6"], program(job, who))
        await_that(lambda: job.output().count("ready\n") == 2, job.output)
        job.process.send_signal(signal.SIGTERM)
        job.await_exit(143)
        assert job.status()["reason"] == "preempted", job.status()
        assert not any("evidence" in worker for worker in job.status()["workers"]), job.status()


def case_H3_a_trainer_in_cpp_says_when_it_is_done(job):
    trainer = os.path.join(job.bin, "ddp_mnist")
    job.start(["--nproc-per-node=2", "--expect-done"], [trainer, "--epochs=1", "--max-steps=3", "--quiet"])
    job.await_exit(0)


if __name__ == "__main__":
    run_named(globals())
