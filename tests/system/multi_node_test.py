"""How several nodes come together, with real processes on "hosts" of their own (netns_lab.py).

usage: multi_node_test.py BIN_DIR SCENARIO    with SCENARIO one of the functions named scenario_* below
"""

import itertools
import os
import re
import shutil
import signal
import time

from multi_node import (CHILD, QUICK, environment_of, main, options, real_network_only, said_environments,
                        say_environment, statuses, until_marked)
from netns_lab import await_that


def scenario_A1_A2_B2_two_nodes_form_at_an_address(lab):
    """Ranks are contiguous, and MASTER_ADDR is the endpoint's address in every worker."""
    launches = [lab.launch(node, options(lab, 2, "--nproc-per-node=2"), say_environment(lab)) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_exit(0)
    workers = [environment_of(f"{lab.folder}/env-{rank}") for rank in range(4)]
    assert [w["GROUP_RANK"] for w in workers] == ["0", "0", "1", "1"], workers
    assert [w["LOCAL_RANK"] for w in workers] == ["0", "1", "0", "1"], workers
    assert {w["WORLD_SIZE"] for w in workers} == {"4"}
    assert {w["MASTER_ADDR"] for w in workers} == {lab.nodes[0].address}
    assert len({w["MASTER_PORT"] for w in workers}) == 1 and workers[0]["MASTER_PORT"] != "0"
    hosts = [launch.node.name for launch in launches if "(hosted here)" in launch.output()]
    assert hosts == ["n1"] or (len(hosts) == 1 and not lab.real), hosts
    assert lab.pids("musterd"), "the daemon outlives its node's launcher"
    await_that(lambda: not lab.pids("musterd"), "the daemon leaves when its job is over")


def end_daemons(lab):
    for pid in lab.pids("musterd"):
        os.kill(pid, signal.SIGKILL)
    await_that(lambda: not lab.pids("musterd"), "no daemon is left")


def scenario_A12_E1_every_start_order_of_four_forms_and_the_endpoints_host_is_first(lab):
    """The endpoint is the node with the highest address."""
    for order in itertools.permutations(range(4)):
        launches = []
        for place in order:
            launches.append(lab.launch(lab.nodes[place], options(lab, 4, host=3), say_environment(lab)))
            # The next one starts only when this one is under way, be it that nobody can be reached yet.
            launches[-1].await_output("muster: job job, node")
        for launch in launches:
            launch.await_exit(0)
        workers = said_environments(lab, 4)
        assert {w["MASTER_ADDR"] for w in workers} == {lab.nodes[3].address}, order
        assert workers[0]["MUSTER_NODE"] == "n4", (order, workers[0])
        end_daemons(lab)


def scenario_A8_M5_the_join_timeout_by_variable_ends_all_waits_together(lab):
    # Whole seconds as the row has them take half a minute; in less time the same is seen.
    full = bool(os.environ.get("MUSTER_FULL_TESTS"))
    too_short_s, enough_s, late_s = (10, 20, 15) if full else (4, 40, 0)
    conf = {"PET_RDZV_CONF": f"join_timeout={too_short_s},last_call_timeout=500ms"}
    own = ["--nnodes=3", "--rdzv-id=job", f"--rdzv-endpoint={lab.nodes[0].address}:{lab.port}"]
    began = time.monotonic()
    launches = [lab.launch(node, own, say_environment(lab), conf) for node in lab.nodes[:2]]
    reasons = set()
    for launch in launches:
        launch.await_exit(75)
        last = launch.output().splitlines()[-1]
        assert f"the join deadline of {too_short_s} s" in last, launch.output()
        reasons.add(last.split("rendezvous: ")[1].split("; status")[0])
    assert too_short_s - 1 < time.monotonic() - began < too_short_s + 2, time.monotonic() - began
    assert len(reasons) == 1, reasons
    end_daemons(lab)
    # The same with time enough for a node that starts when the others have waited for a while.
    conf = {"PET_RDZV_CONF": f"join_timeout={enough_s}"}
    began = time.monotonic()
    launches = [lab.launch(node, own, say_environment(lab), conf) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_output("waiting for")
    while time.monotonic() - began < late_s:  # the delay is what is asked
        time.sleep(0.1)
    launches.append(lab.launch(lab.nodes[2], own, say_environment(lab), conf))
    for launch in launches:
        launch.await_exit(0)


def scenario_A13_who_waits_says_for_whom_and_the_deadline_says_it_again(lab):
    own = [*options(lab, 3), "--rdzv-conf=join_timeout=5"]
    launches = [lab.launch(node, own, say_environment(lab)) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_exit(75)
        before, after = launch.output().split("waiting for 1", 1)
        assert "n1" in after and "n2" in after, launch.output()
        assert "n1" in launch.output().splitlines()[-1] or "n1" in launch.output().rsplit("join", 1)[1], launch.output()


def scenario_A16_E3_two_nodes_with_one_rank_are_both_named(lab):
    began = time.monotonic()
    launches = [lab.launch(node, options(lab, 3, "--node-rank=0"), say_environment(lab)) for node in lab.nodes[:2]]
    for launch in launches:
        assert launch.process.wait(30) != 0
        assert "n1" in launch.output() and "n2" in launch.output(), launch.output()
    assert time.monotonic() - began < 5


def scenario_A9_two_more_nodes_join_later(lab):
    """Long after the last call: all four end in one group."""
    program, go = until_marked(lab)
    launches = [lab.launch(node, options(lab, "2:4"), program) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_output("2 nodes, 2 workers")
    launches += [lab.launch(node, options(lab, "2:4"), program) for node in lab.nodes[2:]]
    for launch in launches:
        launch.await_output("4 nodes, 4 workers")
    go()
    for launch in launches:
        launch.await_exit(0)


def scenario_A10_no_more_coming_ends_the_last_call(lab):
    program, go = until_marked(lab)
    own = [*options(lab, "3:4"), "--rdzv-conf=last_call_timeout=600"]
    launches = [lab.launch(node, own, program) for node in lab.nodes[:3]]
    for launch in launches:
        launch.await_output("last call")
    began = time.monotonic()
    lab.musterctl(lab.nodes[1], "close-roster")
    for launch in launches:
        launch.await_output("3 nodes, 3 workers")
    assert time.monotonic() - began < 2
    go()
    for launch in launches:
        launch.await_exit(0)


def scenario_A14_E4_a_finished_job_is_launched_again_and_each_node_has_its_ranks_back(lab):
    lab.daemon(lab.nodes[3])
    own = options(lab, 3, host=3)
    places = []
    for order in ((2, 0, 1), (1, 2, 0), (0, 1, 2)):
        launches = []
        for index in order:
            launches.append(lab.launch(lab.nodes[index], own, say_environment(lab)))
            launches[-1].await_output("muster: job job, node")
        for launch in launches:
            launch.await_exit(0)
        places.append([w["MUSTER_NODE"] for w in said_environments(lab, 3)])
    assert places[0] == places[1] == places[2], places


def scenario_a_missing_daemon_ends_the_launcher_at_once(lab):
    """Where this node has to host and cannot, waiting for the join deadline would help nobody."""
    alone = f"{lab.folder}/bin"
    os.mkdir(alone)
    shutil.copy(f"{lab.bin}/muster", alone)
    program = say_environment(lab)
    lab.bin = alone
    launch = lab.launch(lab.nodes[0], options(lab, 2), program)
    launch.await_exit(70, 20)
    assert f"{alone}/musterd" in launch.output() and "scripts/build" in launch.output(), launch.output()


def scenario_A19_B12_nodes_come_and_go_around_a_daemon_elsewhere(lab):
    """Each is killed and started again in turn: the others go on, it gets its ranks back, and every worker reaches
    the store at MASTER_ADDR, which is not where the daemon is."""
    lab.daemon(lab.nodes[3])
    program, go = until_marked(lab, "dial", "then", "env", f"{lab.folder}/env-{{round}}-{{rank}}")
    own = options(lab, "2:3", host=3)
    launches = [lab.launch(node, own, program) for node in lab.nodes[:3]]
    for launch in launches:
        launch.await_output("3 nodes, 3 workers")
    before = nodes_of_newest_round(lab, launches[0], 3)
    for index in range(3):
        launches[index].kill(signal.SIGKILL)
        others = [launch for place, launch in enumerate(launches) if place != index]
        for launch in others:
            await_that(lambda: "2 nodes, 2 workers" in launch.rounds()[-1], "the others go on")
        launches[index] = lab.launch(lab.nodes[index], own, program)
        for launch in launches:
            await_that(lambda: launch.rounds() and "3 nodes, 3 workers" in launch.rounds()[-1], "it is back")
        assert nodes_of_newest_round(lab, launches[0], 3) == before
    go()
    for launch in launches:
        launch.await_exit(0)
        assert launch.node.name != "n4"


def nodes_of_newest_round(lab, launch, ranks):
    """By rank, once all workers have dialled the store."""
    number = re.match(r"round (\d+):", launch.rounds()[-1]).group(1)
    said = [f"{lab.folder}/env-{number}-{rank}" for rank in range(ranks)]
    await_that(lambda: all(os.path.exists(path) for path in said), "all workers have dialled the store")
    return [environment_of(path)["MUSTER_NODE"] for path in said]


def scenario_D14_a_spare_steps_in_for_a_node_that_dies(lab):
    program, go = until_marked(lab)
    lab.daemon(lab.nodes[3])
    own = options(lab, 2, "--max-restarts=1", host=3)
    launches = []
    for node in lab.nodes[:3]:
        launches.append(lab.launch(node, own, program))
        launches[-1].await_output("waiting for" if len(launches) == 1 else "spare" if len(launches) == 3 else "round 1:")
    began = time.monotonic()
    launches[1].kill(signal.SIGKILL)
    launches[2].await_output("2 nodes, 2 workers")
    assert time.monotonic() - began < 5
    go()
    for launch in (launches[0], launches[2]):
        launch.await_exit(0)


def scenario_N1_only_who_has_the_token_joins(lab):
    tokens = {}
    for name in ("right", "wrong"):
        tokens[name] = f"{lab.folder}/{name}"
        with open(os.open(tokens[name], os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as f:
            f.write(name * 8)
    with_token = {name: f"--rdzv-conf=token_file={path}" for name, path in tokens.items()}
    first = lab.launch(lab.nodes[0], options(lab, 2, with_token["right"]), say_environment(lab))
    first.await_output("waiting for")
    stranger = lab.launch(lab.nodes[2], options(lab, 2, with_token["wrong"]), say_environment(lab))
    assert stranger.process.wait(60) != 0
    stranger.await_output("token")
    second = lab.launch(lab.nodes[1], options(lab, 2, with_token["right"]), say_environment(lab))
    for launch in (first, second):
        launch.await_exit(0)
    assert not os.path.exists(f"{lab.folder}/env-2")


def scenario_two_launchers_on_one_host_need_no_names(lab):
    """torchrun's own way to try two nodes on one machine."""
    own = ["--nnodes=2", "--rdzv-id=job", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{lab.port}", QUICK]
    launches = [lab.launch(lab.nodes[0], own, say_environment(lab), node_id=False) for _ in range(2)]
    for launch in launches:
        launch.await_exit(0)
        assert "is a loopback address" in launch.output()
    assert {environment_of(f"{lab.folder}/env-{rank}")["GROUP_RANK"] for rank in range(2)} == {"0", "1"}


if __name__ == "__main__":
    main(globals())
