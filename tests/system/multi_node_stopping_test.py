"""One node of several is told to stop, or waits for the others.

usage: multi_node_stopping_test.py BIN_DIR SCENARIO    with SCENARIO one of the functions named scenario_* below
"""

import json
import os
import signal

from jobs import get_health
from multi_node import main, options, until_marked
from netns_lab import await_that

CHILD = "muster_test_child"
EPOCHS = 1 if os.environ.get("MUSTER_SANITIZER") else 2
ALONE = {"OMP_NUM_THREADS": "1"}  # the "hosts" share this machine's few cores


def metrics(lab):
    try:
        with open(f"{lab.folder}/metrics.jsonl") as f:
            return [json.loads(line) for line in f.read().split("\n")[:-1]]
    except FileNotFoundError:
        return []


def steps_of(events):
    return [event["step"] for event in events if event["event"] == "step"]


def scenario_F4_a_term_to_one_agent_costs_the_others_no_step(lab):
    """Its workers and those of the other node save after the same step; the other node goes on from there."""
    program = lab.program("ddp_mnist", f"--epochs={EPOCHS}", f"--checkpoint-dir={lab.folder}/checkpoint",
                          "--checkpoint-every=1000000", f"--metrics-file={lab.folder}/metrics.jsonl", "--quiet")
    launches = [lab.launch(node, options(lab, "1:2"), program, ALONE) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_output("2 nodes, 2 workers")
    await_that(lambda: len(steps_of(metrics(lab))) >= 30, "30 steps")
    launches[1].kill(signal.SIGTERM)
    launches[1].await_exit(128 + signal.SIGTERM)
    assert "SIGTERM came: 1 worker asked to save" in launches[1].output(), launches[1].output()
    launches[0].await_exit(0, 200)
    assert "n2 leaves" in launches[0].rounds()[1], launches[0].output()
    events = metrics(lab)
    drained = [event["step"] for event in events if event["event"] == "drained"]
    assert drained and drained == [event["step"] for event in events if event["event"] == "resumed"], events
    steps = steps_of(events)
    assert steps == list(range(1, len(steps) + 1)), "a step was repeated or left out"


def take_times(lab, ranks):
    """When (s) each rank stamped heard-RANK; that file and ready-RANK are removed, for the next attempt."""
    heard = []
    for rank in range(ranks):
        with open(f"{lab.folder}/heard-{rank}") as f:
            heard.append(int(f.read()) / 1e9)
        os.remove(f"{lab.folder}/heard-{rank}")
        os.remove(f"{lab.folder}/ready-{rank}")
    return heard


def scenario_F4_all_workers_hear_of_a_stop_within_half_a_second(lab):
    """Two agents with two workers each that do nothing but note when SIGTERM came."""
    program = lab.program("muster_test_child", "hold", "TERM", "then", "touch", f"{lab.folder}/ready-{{rank}}", "then",
                          "take", "TERM", "then", "stamp", f"{lab.folder}/heard-{{rank}}")
    own = options(lab, 2, "--nproc-per-node=2", "--rdzv-conf=join_timeout=5")  # for which the other one waits
    spreads = []
    for attempt in range(3):  # others use this machine too: the best of three
        launches = [lab.launch(node, own, program) for node in lab.nodes[:2]]
        await_that(lambda: all(os.path.exists(f"{lab.folder}/ready-{rank}") for rank in range(4)), "four workers")
        launches[0].kill(signal.SIGTERM)
        for launch in launches:
            launch.process.wait(60)
        heard = take_times(lab, 4)
        spreads.append(max(heard) - min(heard))
        if spreads[-1] < 0.5:
            return
    raise AssertionError(f"between the first and the last worker: {spreads} s")


def scenario_H5_all_other_workers_have_SIGTERM_within_a_second(lab):
    """Of two nodes with four workers each one fails."""
    program = lab.program("muster_test_child", "hold", "TERM", "then", "touch", f"{lab.folder}/ready-{{rank}}", "then",
                          "if-rank", "5", "then", "await", f"{lab.folder}/go", "then", "stamp",
                          f"{lab.folder}/heard-{{rank}}", "then", "exit", "1", "then", "end", "then", "take", "TERM",
                          "then", "stamp", f"{lab.folder}/heard-{{rank}}")
    own = options(lab, 2, "--nproc-per-node=4")
    delays = []
    for attempt in range(3):  # others use this machine too: the best of three
        launches = [lab.launch(node, own, program) for node in lab.nodes[:2]]
        await_that(lambda: all(os.path.exists(f"{lab.folder}/ready-{rank}") for rank in range(8)), "eight workers")
        open(f"{lab.folder}/go", "w").close()
        for launch in launches:
            launch.await_exit(1)
        heard = take_times(lab, 8)
        os.remove(f"{lab.folder}/go")
        delays.append(max(heard) - heard[5])
        if delays[-1] < 1:
            return
    raise AssertionError(f"from the failure to the last worker: {delays} s")


def scenario_L3_a_node_that_has_finished_and_waits_is_healthy(lab):
    """However long the others take."""
    program = lab.program("muster_test_child", "dial", "then", "if-rank", "0", "then", "await", f"{lab.folder}/go")
    page = f"{lab.folder}/health"
    launches = [lab.launch(node, options(lab, 2, *more), program)
                for node, more in zip(lab.nodes, ((), (f"--health=unix:{page}", "--progress-timeout=1")))]
    await_that(lambda: os.path.exists(page), "the health page")
    await_that(lambda: get_health(page)[1]["state"] == "draining", "it has finished and waits")
    status, health = get_health(page)
    assert status == 200 and "waiting for the other nodes" in health["why"], health
    open(f"{lab.folder}/go", "w").close()
    for launch in launches:
        launch.await_exit(0)


def scenario_D10_who_finishes_first_waits_and_serves_the_store(lab):
    """The host of the endpoint and of the store is done at once; the other's worker still reaches the store."""
    program, go = until_marked(lab, "if-rank", "1")
    program = lab.program("muster_test_child", "if-rank", "1", "then", "await", f"{lab.folder}/go", "then", "dial",
                          "then", "end")
    launches = [lab.launch(node, options(lab, 2), program) for node in lab.nodes[:2]]
    launches[0].await_output("round 1:")
    await_that(lambda: len(lab.pids(CHILD)) == 1, "rank 0 is done")
    assert launches[0].process.poll() is None
    go()
    for launch in launches:
        launch.await_exit(0)
        assert "rror" not in launch.output(), launch.output()


def scenario_D10_who_waited_as_long_as_the_exit_barrier_allows_leaves_and_the_stores_host_stays(lab):
    """Rank 2 works for longer than that: rank 1's node ends well before it, with one line, and the host after it."""
    program = lab.program("muster_test_child", "if-rank", "2", "then", "await", f"{lab.folder}/go", "then", "dial",
                          "then", "end")
    own = [*options(lab, 3), "--rdzv-conf=exit_barrier=1s"]
    launches = [lab.launch(node, [*own, f"--node-rank={rank}"], program) for rank, node in enumerate(lab.nodes[:3])]
    launches[1].await_exit(0)
    assert "job job succeeded" in launches[1].output(), launches[1].output()
    assert launches[0].process.poll() is None and launches[2].process.poll() is None
    open(f"{lab.folder}/go", "w").close()
    for launch in (launches[0], launches[2]):
        launch.await_exit(0)
        assert "rror" not in launch.output(), launch.output()


if __name__ == "__main__":
    main(globals())
