"""A node's health page: health_test.py BIN_DIR CASE."""

import os
import signal

from jobs import await_that, get_health, run_named

# Tells of steps until the file is there, and then of none.
WORKER = """
import os, sys, time
import muster_worker
worker = muster_worker.join()
step = 0
while True:
    time.sleep(0.01)
    if not (worker.rank == 1 and os.path.exists(sys.argv[1])):
        step += 1
        worker.progress(step)
"""


def case_L2_a_rank_that_makes_no_steps_turns_the_page_503_and_is_named(job):
    page = job.path("health")
    job.start(["--nproc-per-node=2", f"--health=unix:{page}", "--progress-timeout=2", "--stop-grace=6"],
              ["python3", job.write("worker.py", WORKER), job.path("stop")])
    await_that(lambda: os.path.exists(page), job.output)
    await_that(lambda: all((rank["step"] or 0) > 0 for rank in get_health(page)[1]["ranks"] or [{"step": 0}]), job.output)
    status, health = get_health(page)
    assert status == 200 and health["healthy"] and health["state"] == "running", health
    assert health["round"] == 1 and health["world_size"] == 2 and health["job"] == "job", health
    assert [rank["rank"] for rank in health["ranks"]] == [0, 1], health
    open(job.path("stop"), "w").close()
    await_that(lambda: get_health(page)[0] == 503, lambda: str(get_health(page)))
    health = get_health(page)[1]
    assert "rank 1 (local 1" in health["why"] and "rank 0" not in health["why"], health
    assert f"health: unix:{page}" in job.output(), job.output()
    job.process.send_signal(signal.SIGTERM)
    job.await_exit(143)
    assert not os.path.exists(page), "the socket is left over"


def case_L2_a_place_that_is_taken_is_said_before_anything_starts(job):
    job.write("taken", "")
    job.start([f"--health=unix:{job.path('taken')}"], ["echo", "started"])
    job.await_exit(70)
    assert "--health unix:" in job.output() and "started" not in job.output().replace("anything starts", ""), job.output()


def case_L2_a_folder_that_is_not_there_is_refused_and_not_made(job):
    job.start([f"--health=unix:{job.path('nowhere')}/socket"], ["echo", "started"])
    job.await_exit(70)
    assert f"there is no folder {job.path('nowhere')}" in job.output(), job.output()
    assert not os.path.exists(job.path("nowhere"))


if __name__ == "__main__":
    run_named(globals())
