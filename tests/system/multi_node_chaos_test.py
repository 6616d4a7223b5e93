"""Faults that an operator sends into a live job: musterctl chaos.

usage: multi_node_chaos_test.py BIN_DIR SCENARIO    with SCENARIO one of the functions named scenario_* below
"""

import signal
import subprocess

from multi_node import CHILD, main, options, statuses, until_marked
from netns_lab import await_that

ALLOWED = "--rdzv-conf=allow_chaos=true"


def start(lab, nnodes, *more):
    """A job on two hosts, at work; what it returns beside the launches lets the workers end well."""
    program, go = until_marked(lab)
    launches = [lab.launch(node, [*options(lab, nnodes, *more), f"--node-rank={rank}"], program)
                for rank, node in enumerate(lab.nodes[:2])]
    for launch in launches:
        launch.await_output("round 1: 2 nodes, 2 workers")
    await_that(lambda: len(lab.pids(CHILD)) == 2, "both work")
    return launches, go


def scenario_a_rehearsed_end_of_a_worker_restarts_the_round_and_is_told(lab):
    """As a crash would; what is told of it is a killed worker, and in the events who did it."""
    launches, go = start(lab, 2, "--max-restarts=1", ALLOWED)
    assert lab.musterctl(lab.nodes[0], "chaos", "worker", "1") == "SIGKILL goes to rank 1 on n2\n"
    for launch in launches:
        launch.await_output("round 2: 2 nodes, 2 workers")
        assert ("rank 1 on n2 was killed by SIGKILL; an operator sent it on purpose (musterctl chaos)"
                in launch.rounds()[1]), launch.output()
    assert "muster: musterctl chaos: SIGKILL to rank 1 (pid " in launches[1].output(), launches[1].output()
    assert "musterctl chaos: " not in launches[0].output(), launches[0].output()
    events = lab.musterctl(lab.nodes[1], "events")
    assert "job  an operator sent SIGKILL to rank 1 on n2 (musterctl chaos)\n" in events, events
    go()
    for launch in launches:
        launch.await_exit(0)
    reports = statuses(lab)
    assert [report["restarts"] for report in reports] == [["rank 1 (SIGKILL)"]] * 2, reports
    victim = reports[1]["workers"][0]
    assert (victim["round"], victim["rank"], victim["signal"]) == (1, 1, "SIGKILL"), victim
    assert f"SIGKILL to rank 1 (pid {victim['pid']})" in launches[1].output(), victim


def scenario_the_others_go_on_after_a_rehearsed_end_of_a_launcher(lab):
    """Its line is out before it is gone, and no worker of it is left."""
    launches, go = start(lab, "1:2", ALLOWED)
    assert lab.musterctl(lab.nodes[0], "chaos", "agent", "n2") == "SIGKILL goes to the launcher of n2\n"
    launches[1].await_exit(-signal.SIGKILL)
    assert "muster: musterctl chaos: SIGKILL to this launcher\n" in launches[1].output(), launches[1].output()
    launches[0].await_output("1 node, 1 worker")
    assert ("n2 was lost (the peer closed the connection; SIGKILL to its launcher, rehearsed by musterctl chaos)"
            in launches[0].rounds()[1]), launches[0].output()
    events = lab.musterctl(lab.nodes[0], "events")
    assert "ended: the peer closed the connection; SIGKILL to its launcher, rehearsed by musterctl chaos\n" in events, events
    await_that(lambda: len(lab.pids(CHILD)) == 1, "the killed launcher's worker is gone")
    go()
    launches[0].await_exit(0)


def scenario_a_launcher_that_is_told_to_leave_by_a_rehearsal_leaves(lab):
    launches, go = start(lab, "1:2", ALLOWED)
    lab.musterctl(lab.nodes[0], "chaos", "agent", "n2", "--signal=TERM")
    launches[1].await_exit(128 + signal.SIGTERM)
    assert "stopped by SIGTERM, rehearsed by musterctl chaos" in launches[1].output(), launches[1].output()
    launches[0].await_output("1 node, 1 worker")
    assert "n2 leaves (SIGTERM, rehearsed by musterctl chaos)" in launches[0].rounds()[1], launches[0].output()
    go()
    launches[0].await_exit(0)


def scenario_a_job_that_was_not_started_for_rehearsals_is_not_hurt(lab):
    launches, go = start(lab, 2)
    for words in (("worker", "1"), ("agent", "n2")):
        refused = subprocess.run([*lab.nodes[0].prefix, f"{lab.bin}/musterctl",
                                  f"--endpoint={lab.nodes[0].address}:{lab.port}", "chaos", *words],
                                 check=False, capture_output=True, text=True, timeout=30)
        assert refused.returncode == 1, refused
        assert refused.stderr == ("musterctl: refused: job job was not started for rehearsals: "
                                  "give all its launchers --rdzv-conf=allow_chaos=true\n"), refused
    go()
    for launch in launches:
        launch.await_exit(0)
        assert "chaos" not in launch.output() and len(launch.rounds()) == 1, launch.output()


def scenario_nodes_that_do_not_agree_on_rehearsals_do_not_meet(lab):
    lab.daemon(lab.nodes[0])
    program, go = until_marked(lab)
    first = lab.launch(lab.nodes[0], options(lab, "1:2", "--node-rank=0"), program)
    first.await_output("round 1:")
    second = lab.launch(lab.nodes[1], options(lab, "1:2", "--node-rank=1", ALLOWED), program)
    second.await_exit(75)
    assert "allow_chaos is false in the job and true on this node" in second.output(), second.output()
    go()
    first.await_exit(0)


if __name__ == "__main__":
    main(globals())
