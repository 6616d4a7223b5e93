"""What cannot work is said early and in its own words: a name that is taken, an address that is another machine's.

usage: multi_node_refusals_test.py BIN_DIR SCENARIO    with SCENARIO one of the functions named scenario_* below
"""

import sys

from multi_node import QUICK, environment_of, main, options, say_environment, until_marked
from netns_lab import await_that


def scenario_a_node_id_that_is_taken_is_said_at_once_and_the_job_is_not_run_again(lab):
    """The second may be the same node with a dead connection, so it tries for a while; when the first has ended, it does
    not begin anew."""
    lab.daemon(lab.nodes[0])
    program, go = until_marked(lab)
    own = ["--node-id=x", *options(lab, "1:2")]
    first = lab.launch(lab.nodes[0], own, program, node_id=False)
    first.await_output("round 1:")
    second = lab.launch(lab.nodes[1], own, program, node_id=False)
    second.await_output("a node 'x' is here already", 5)
    assert "refused by the rendezvous at" in second.output(), second.output()
    go()
    first.await_exit(0)
    second.await_exit(75)
    for line in ("cannot reach", "not hosted here", "round 1"):
        assert line not in second.output(), second.output()


def scenario_B9_an_IPv4_mapped_endpoint_is_its_IPv4_address(lab):
    address = lab.nodes[0].address
    own = ["--nnodes=2", "--rdzv-id=job", f"--rdzv-endpoint=[::ffff:{address}]:{lab.port}", QUICK]
    launches = [lab.launch(node, own, say_environment(lab)) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_exit(0)
    assert {environment_of(f"{lab.folder}/env-{rank}")["MASTER_ADDR"] for rank in range(2)} == {address}


def scenario_A1_a_local_addr_that_is_not_this_machines_is_refused_with_its_option(lab):
    launch = lab.launch(lab.nodes[0], options(lab, 2, "--local-addr=192.0.2.9"), say_environment(lab))
    launch.await_exit(2)
    assert "--local-addr: 192.0.2.9: not an address of this machine" in launch.output(), launch.output()


def scenario_A1_a_host_by_option_of_a_foreign_address_is_told_so_and_leaves_no_daemon(lab):
    own = ["--nnodes=2", "--rdzv-id=job", "--rdzv-endpoint=192.0.2.9:" + str(lab.port), QUICK,
           "--rdzv-conf=is_host=true,join_timeout=8s"]
    launch = lab.launch(lab.nodes[0], own, say_environment(lab))
    launch.await_output("192.0.2.9 is no address of this machine")
    launch.await_exit(75, 60)
    assert "cannot be hosted" not in launch.output(), launch.output()
    await_that(lambda: not lab.pids("musterd"), "the daemon leaves soon after its launcher")


def scenario_C5_who_takes_connections_and_is_no_rendezvous_is_named_soon(lab):
    stranger = lab.start(lab.nodes[0], [sys.executable, "-c", f"""
import socket, time
listener = socket.create_server(("{lab.nodes[0].address}", {lab.port}))
print("ready", flush=True)
time.sleep(600)
"""])
    stranger.await_output("ready")
    launch = lab.launch(lab.nodes[0], options(lab, 2), say_environment(lab))
    launch.await_output("has not answered for 4 s", 9)
    launch.await_output(f"held by pid {stranger.process.pid}", 9)


if __name__ == "__main__":
    main(globals())
