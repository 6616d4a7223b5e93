"""Jobs of several nodes, with real processes on "hosts" of their own (netns_lab.py).

usage: multi_node_test.py BIN_DIR SCENARIO    with SCENARIO one of the functions named scenario_* below
"""

import glob
import itertools
import json
import os
import signal
import sys

from netns_lab import Lab, await_that

QUICK = "--rdzv-conf=join_timeout=60,last_call_timeout=500ms,closed_grace=200ms,settle_window=200ms"


def options(lab, nodes, *more, host=0):
    return [f"--nnodes={nodes}", "--rdzv-id=job", f"--rdzv-endpoint={lab.nodes[host].address}:{lab.port}", QUICK, *more]


def environment_of(path):
    with open(path, "rb") as f:
        return dict(entry.decode().split("=", 1) for entry in f.read().split(b"\0") if entry)


def say_environment(lab):
    return lab.program("muster_test_child", "env", f"{lab.folder}/env-{{rank}}")


def statuses(lab):
    found = []
    for path in sorted(glob.glob(f"{lab.folder}/logs/job/*/status.json")):
        with open(path) as f:
            found.append(json.load(f))
    return found


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


def scenario_A12_every_start_order_forms(lab):
    for count in (2, 3):
        for order in itertools.permutations(range(count)):
            launches = []
            for place in order:
                launches.append(lab.launch(lab.nodes[place], options(lab, count), say_environment(lab)))
                # The next one starts only when this one is under way, be it that nobody can be reached yet.
                launches[-1].await_output("muster: job job, node")
            for launch in launches:
                launch.await_exit(0)
            masters = {environment_of(f"{lab.folder}/env-{rank}")["MASTER_ADDR"] for rank in range(count)}
            assert masters == {lab.nodes[0].address}, (order, masters)


def scenario_B4_local_addr_is_what_workers_get(lab):
    """The second node has rank 0, and says by which address it is reached."""
    second = lab.nodes[1]
    launches = [lab.launch(lab.nodes[0], options(lab, 2, "--node-rank=1"), say_environment(lab)),
                lab.launch(second, options(lab, 2, "--node-rank=0", f"--local-addr={second.address}"),
                           say_environment(lab))]
    for launch in launches:
        launch.await_exit(0)
    for rank in range(2):
        assert environment_of(f"{lab.folder}/env-{rank}")["MASTER_ADDR"] == second.address


def scenario_A3_B1_a_name_that_each_node_resolves_in_its_own_way(lab):
    """At home it is a loopback address, as in Debian's /etc/hosts; workers get a number that all can reach."""
    if not lab.real:
        return print("left out: needs a name table for each host")
    lab.name_table(lab.nodes[0], "127.0.0.1 localhost\n127.0.1.1 alpha.sub.svc alpha\n")
    lab.name_table(lab.nodes[1], "127.0.0.1 localhost\n10.77.0.1 alpha.sub.svc\n")
    own = ["--nnodes=2", "--rdzv-id=job", f"--rdzv-endpoint=alpha.sub.svc:{lab.port}", QUICK]
    launches = [lab.launch(node, own, say_environment(lab)) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_exit(0)
    assert "(hosted here)" in launches[0].output() and "(hosted here)" not in launches[1].output()
    for rank in range(2):
        assert environment_of(f"{lab.folder}/env-{rank}")["MASTER_ADDR"] == lab.nodes[0].address


def scenario_P1_a_name_that_comes_late_is_no_error(lab):
    if not lab.real:
        return print("left out: needs a name table for each host")
    lab.name_table(lab.nodes[0], "10.77.0.1 late.svc\n")
    lab.name_table(lab.nodes[1], "127.0.0.1 localhost\n")
    own = ["--nnodes=2", "--rdzv-id=job", f"--rdzv-endpoint=late.svc:{lab.port}", QUICK]
    launches = [lab.launch(node, own, say_environment(lab)) for node in lab.nodes[:2]]
    launches[1].await_output("cannot be looked up")
    lab.change_name_table(lab.nodes[1], "10.77.0.1 late.svc\n")
    for launch in launches:
        launch.await_exit(0)


def scenario_B9_IPv6_endpoint(lab):
    endpoint = f"[fd77::1]:{lab.port}" if lab.real else f"[::1]:{lab.port}"
    nodes = lab.nodes[:2] if lab.real else [lab.nodes[0]] * 2
    own = ["--nnodes=2", "--rdzv-id=job", f"--rdzv-endpoint={endpoint}", QUICK]
    launches = [lab.launch(node, own, say_environment(lab), node_id=False) for node in nodes]
    for launch in launches:
        launch.await_exit(0)
    master = "fd77::1" if lab.real else "::1"
    assert {environment_of(f"{lab.folder}/env-{rank}")["MASTER_ADDR"] for rank in range(2)} == {master}


def scenario_D11_static_meets_at_the_master(lab):
    """The nodes' ranks are honoured, and a failure reaches every node."""
    program = lab.program("muster_test_child", "if-rank", "2", "then", "exit", "7", "then", "end", "then", "wait")
    launches = []
    for rank, node in enumerate(lab.nodes):
        own = ["--nnodes=3", "--rdzv-id=job", "--rdzv-backend=static", f"--node-rank={2 - rank}",
               f"--master-addr={lab.nodes[0].address}", f"--master-port={lab.port}"]
        launches.append(lab.launch(node, own, program))
    for launch in launches:
        launch.await_exit(7)
    assert "rank 2 on n1" in launches[2].output(), launches[2].output()


def scenario_H5_H7_a_failure_ends_all_nodes_with_one_report(lab):
    program = lab.program("muster_test_child", "if-rank", "1", "then", "err", "1", "boom", "then", "exit", "9",
                          "then", "end", "then", "wait")
    launches = [lab.launch(node, options(lab, 3), program) for node in lab.nodes]
    for launch in launches:
        launch.await_exit(9)
    firsts = [status["first_failure"] for status in statuses(lab)]
    assert len(firsts) == 3 and all(first == firsts[0] and first["rank"] == 1 for first in firsts), firsts
    for launch in launches:
        assert "rank 1 on " in launch.output() and "boom 0" in launch.output(), launch.output()


def scenario_H6_a_lost_node_of_a_fixed_job_ends_it_everywhere(lab):
    launches = [lab.launch(node, options(lab, 3), lab.program("muster_test_child", "wait")) for node in lab.nodes]
    for launch in launches:
        launch.await_output("round 1:")
    launches[2].kill(signal.SIGKILL)
    codes = {launch.process.wait(60) for launch in launches[:2]}
    assert len(codes) == 1 and codes != {0}, codes
    for launch in launches[:2]:
        assert "n3" in launch.output(), launch.output()


def until_marked(lab):
    """Workers that run until the test puts a file down, and then end well."""
    return lab.program("muster_test_child", "await", f"{lab.folder}/go"), lambda: open(f"{lab.folder}/go", "w").close()


def scenario_D3_the_others_go_on_without_a_killed_agent(lab):
    program, go = until_marked(lab)
    launches = [lab.launch(node, options(lab, "1:3"), program) for node in lab.nodes]
    for launch in launches:
        launch.await_output("3 nodes, 3 workers")
    launches[2].kill(signal.SIGKILL)
    for launch in launches[:2]:
        launch.await_output("2 nodes, 2 workers")
    await_that(lambda: len(lab.pids("muster_test_chi")) == 2, "the killed agent's worker is gone")
    go()
    for launch in launches[:2]:
        launch.await_exit(0)


def scenario_A9_a_third_node_joins_later(lab):
    program, go = until_marked(lab)
    launches = [lab.launch(node, options(lab, "1:3"), program) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_output("2 nodes, 2 workers")
    launches.append(lab.launch(lab.nodes[2], options(lab, "1:3"), program))
    for launch in launches:
        launch.await_output("3 nodes, 3 workers")
    go()
    for launch in launches:
        launch.await_exit(0)


def events_of(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def training(lab, *more):
    """ddp_mnist, which saves only when it is asked to, and the path of its metrics."""
    metrics = f"{lab.folder}/metrics.jsonl"
    open(metrics, "w").close()
    return lab.program("ddp_mnist", "--epochs=3", f"--checkpoint-dir={lab.folder}/checkpoint",
                       "--checkpoint-every=1000000", f"--metrics-file={metrics}", *more), metrics


def reached(metrics, step):
    return lambda: any(e["event"] == "step" and e["step"] >= step for e in events_of(metrics))


def scenario_D12_F4_a_node_that_joins_costs_no_step(lab):
    """Workers save when they are asked to, all at the same step, and the larger world goes on from there."""
    program, metrics = training(lab)
    # The "hosts" share this machine's few cores.
    start = lambda node: lab.launch(node, options(lab, "1:3"), program, {"OMP_NUM_THREADS": "1"})  # noqa: E731
    launches = [start(node) for node in lab.nodes[:2]]
    await_that(reached(metrics, 30), "step 30 is done by two nodes")
    launches.append(start(lab.nodes[2]))
    for launch in launches:
        launch.await_exit(0)
    assert "3 nodes, 3 workers" in launches[2].output(), launches[2].output()
    events = events_of(metrics)
    drained = [e["step"] for e in events if e["event"] == "drained"]
    assert drained and drained == [e["step"] for e in events if e["event"] == "resumed"], events
    steps = [e["step"] for e in events if e["event"] == "step"]
    assert steps == list(range(1, len(steps) + 1)), "a step was repeated or left out"


def scenario_D5_a_node_that_is_told_to_leave_is_let_go(lab):
    program, go = until_marked(lab)
    launches = [lab.launch(node, options(lab, "1:3"), program) for node in lab.nodes]
    for launch in launches:
        launch.await_output("3 nodes, 3 workers")
    launches[0].kill(signal.SIGTERM)  # the one whose host has the endpoint
    launches[0].await_exit(128 + signal.SIGTERM)
    for launch in launches[1:]:
        launch.await_output("2 nodes, 2 workers")
    go()
    for launch in launches[1:]:
        launch.await_exit(0)


def scenario_D7_a_hosted_daemon_that_dies_is_hosted_again(lab):
    """No worker restarts."""
    program, go = until_marked(lab)
    launches = [lab.launch(node, options(lab, 2), program) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_output("round 1:")
    workers = sorted(lab.pids("muster_test_chi"))
    for _ in range(3):
        daemon = lab.pids("musterd")
        assert len(daemon) == 1, daemon
        os.kill(daemon[0], signal.SIGKILL)
        await_that(lambda: lab.pids("musterd") not in ([], daemon), "another daemon")
    for launch in launches:
        launch.await_output("connected again")
    assert sorted(lab.pids("muster_test_chi")) == workers
    go()
    for launch in launches:
        launch.await_exit(0)
    assert "round 2" not in launches[0].output()


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


def main():
    bin_dir, scenario = sys.argv[1:3]
    with Lab(bin_dir) as lab:
        globals()["scenario_" + scenario](lab)


if __name__ == "__main__":
    main()
