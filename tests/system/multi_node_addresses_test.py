"""Names, addresses and ports between nodes: who hosts, and what workers get as MASTER_ADDR and MASTER_PORT.

usage: multi_node_addresses_test.py BIN_DIR SCENARIO    with SCENARIO one of the functions named scenario_* below
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time

from multi_node import (PATIENCE, QUICK, environment_of, main, options, real_network_only, said_environments, say_environment,
                        until_marked)
from netns_lab import await_that


def scenario_B4_E2_local_addr_is_what_workers_get(lab):
    """The second node has rank 0, and says by which address it is reached."""
    second = lab.nodes[1]
    launches = [lab.launch(lab.nodes[0], options(lab, 2, "--node-rank=1"), say_environment(lab)),
                lab.launch(second, options(lab, 2, "--node-rank=0", f"--local-addr={second.address}"),
                           say_environment(lab))]
    for launch in launches:
        launch.await_exit(0)
    for rank in range(2):
        assert environment_of(f"{lab.folder}/env-{rank}")["MASTER_ADDR"] == second.address


def scenario_E2_node_ranks_are_followed_in_an_elastic_job(lab):
    own = [*options(lab, "2:3"), "--rdzv-conf=last_call_timeout=60"]
    program = say_environment(lab)
    launches = [lab.launch(node, [*own, f"--node-rank={1 - rank}"], program) for rank, node in enumerate(lab.nodes[:2])]
    for launch in launches:
        launch.await_output("last call")
    lab.musterctl(lab.nodes[1], "close-roster")
    for launch in launches:
        launch.await_exit(0)
    assert [worker["MUSTER_NODE"] for worker in said_environments(lab, 2)] == ["n2", "n1"]


def launch_two_at(lab, name):
    """Their workers reach the store at MASTER_ADDR before they say what they were given."""
    own = ["--nnodes=2", "--rdzv-id=job", f"--rdzv-endpoint={name}:{lab.port}", QUICK]
    program = lab.program("muster_test_child", "dial", "then", "env", f"{lab.folder}/env-{{rank}}")
    return [lab.launch(node, own, program) for node in lab.nodes[:2]]


def scenario_A3_B1_B13_a_name_that_each_node_resolves_in_its_own_way(lab):
    """At home it is a loopback address, as in Debian's /etc/hosts; workers get a number that all can reach. The same
    by the name's alias."""
    if not real_network_only(lab):
        return
    lab.name_table(lab.nodes[0], "127.0.0.1 localhost\n127.0.1.1 alpha.sub.svc alpha\n")
    lab.name_table(lab.nodes[1], "127.0.0.1 localhost\n10.77.0.1 alpha.sub.svc alpha\n")
    for name in ("alpha.sub.svc", "alpha"):
        launches = launch_two_at(lab, name)
        for launch in launches:
            launch.await_exit(0)
        assert "(hosted here)" not in launches[1].output()
        for rank in range(2):
            assert environment_of(f"{lab.folder}/env-{rank}")["MASTER_ADDR"] == lab.nodes[0].address
            os.remove(f"{lab.folder}/env-{rank}")
        await_that(lambda: not lab.pids("musterd"), "the daemon leaves when its job is over")


def scenario_B13_of_an_endpoints_several_addresses_the_one_that_was_reached_counts(lab):
    """Nobody has the first of them; what the node offers as MASTER_ADDR is its own end of the connection that stands."""
    if not real_network_only(lab):
        return
    lab.name_table(lab.nodes[0], f"127.0.0.1 localhost\n{lab.nodes[0].address} alpha\n")
    lab.name_table(lab.nodes[1], f"127.0.0.1 localhost\nfd77::99 alpha\n{lab.nodes[0].address} alpha\n")
    own = ["--nnodes=2", f"--rdzv-endpoint=alpha:{lab.port}", "--rdzv-id=job", QUICK]
    program = say_environment(lab)
    launches = [lab.launch(node, [*own, f"--node-rank={1 - place}"], program) for place, node in enumerate(lab.nodes[:2])]
    for launch in launches:
        launch.await_exit(0)
    for rank in range(2):
        assert environment_of(f"{lab.folder}/env-{rank}")["MASTER_ADDR"] == lab.nodes[1].address


def scenario_B7_a_name_with_one_IPv4_address_is_reached_at_once(lab):
    """Although IPv6 is there: within a second of the daemon's being there, and without a line about it."""
    if not real_network_only(lab):
        return
    lab.daemon(lab.nodes[3])
    lab.name_table(lab.nodes[1], f"127.0.0.1 localhost\n::1 localhost\n{lab.nodes[3].address} only.v4\n")
    own = ["--nnodes=2", f"--rdzv-endpoint=only.v4:{lab.port}", QUICK]
    took_s = []
    for attempt in range(3):  # others use this machine too: the best of three
        began = time.monotonic()
        launch = lab.launch(lab.nodes[1], [*own, f"--rdzv-id=job{attempt}"], say_environment(lab))
        launch.await_output("waiting for")
        took_s.append(time.monotonic() - began)
        assert "cannot" not in launch.output(), launch.output()
        launch.kill(signal.SIGKILL)
        if took_s[-1] < PATIENCE:
            return
    raise AssertionError(f"{took_s} s")


def listening(node, port):
    """Addresses of the node at which something listens on the port, as the kernel writes them."""
    found = []
    for table in ("tcp", "tcp6"):
        for line in node.run("cat", f"/proc/net/{table}").splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and int(local.split(":")[1], 16) == port:
                found.append(local.split(":")[0])
    return found


def scenario_A1_N2_the_endpoints_interface_hosts_and_no_other_is_bound(lab):
    """It is not the one that leads elsewhere. Both launchers have the same arguments, and are in a round within 5 s."""
    if not real_network_only(lab):
        return
    for number, node in enumerate(lab.nodes[:2], 1):
        node.run("ip", "link", "add", "link", "eth0", "name", "fast0", "type", "macvlan", "mode", "bridge")
        node.run("ip", "addr", "add", f"10.78.0.{number}/24", "dev", "fast0")
        node.run("ip", "link", "set", "fast0", "up")
    program, go = until_marked(lab)
    began = time.monotonic()
    own = ["--nnodes=2", "--rdzv-id=job", f"--rdzv-endpoint=10.78.0.1:{lab.port}", QUICK]
    launches = [lab.launch(node, own, program) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_output("2 nodes, 2 workers")
    assert time.monotonic() - began < 5 * PATIENCE, time.monotonic() - began
    assert "(hosted here)" in launches[0].output() and "(hosted here)" not in launches[1].output()
    assert listening(lab.nodes[0], lab.port) == ["01004E0A"], listening(lab.nodes[0], lab.port)
    assert not listening(lab.nodes[1], lab.port)
    go()
    for launch in launches:
        launch.await_exit(0)


NAME_SERVER = """
import socket, sys
address, name, answer = sys.argv[1:]
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((address, 53))
print("serving", flush=True)
while True:
    query, client = server.recvfrom(512)
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    question = query[12:at + 5]
    known = ".".join(labels).lower() == name
    has = known and question[-4:-2] == bytes([0, 1])
    print(".".join(labels), flush=True)
    head = query[:2] + bytes([0x85, 0x80 if known else 0x83, 0, 1, 0, int(has), 0, 0, 0, 0])
    record = bytes([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4]) + socket.inet_aton(answer) if has else b""
    server.sendto(head + question + record, client)
"""


def scenario_A3_a_name_that_only_a_search_domain_completes(lab):
    """As a pod's short name in its namespace: no table has it, and the name server knows the whole one."""
    if not real_network_only(lab):
        return
    server = lab.start(lab.nodes[2], [sys.executable, "-c", NAME_SERVER, lab.nodes[2].address, "a.sub.svc.cluster",
                                      lab.nodes[0].address])
    server.await_output("serving")
    for node in lab.nodes[:2]:
        lab.name_table(node, "127.0.0.1 localhost\n",
                       f"nameserver {lab.nodes[2].address}\nsearch svc.cluster\noptions timeout:5 attempts:5\n")
    launches = launch_two_at(lab, "a.sub")
    for launch in launches:
        launch.await_exit(0)
    assert "(hosted here)" in launches[0].output() and "(hosted here)" not in launches[1].output()
    assert "a.sub.svc.cluster" in server.output().split()
    assert {worker["MASTER_ADDR"] for worker in said_environments(lab, 2)} == {lab.nodes[0].address}


def scenario_P1_a_name_that_comes_late_is_no_error(lab):
    if not real_network_only(lab):
        return
    lab.name_table(lab.nodes[0], "10.77.0.1 late.svc\n")
    lab.name_table(lab.nodes[1], "127.0.0.1 localhost\n")
    launches = launch_two_at(lab, "late.svc")
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


def scenario_A4_A5_A7_the_endpoints_interface_is_the_one_that_workers_get(lab):
    """Each host has a second network, and its name is an address of the first."""
    if not real_network_only(lab):
        return
    name = socket.gethostname()
    for number, node in enumerate(lab.nodes[:2], 1):
        node.run("ip", "link", "add", "link", "eth0", "name", "fast0", "type", "macvlan", "mode", "bridge")
        node.run("ip", "addr", "add", f"10.78.0.{number}/24", "dev", "fast0")
        node.run("ip", "link", "set", "fast0", "up")
        lab.name_table(node, f"127.0.0.1 localhost\n{node.address} {name}\n")
    own = ["--nnodes=2", "--rdzv-id=job", f"--rdzv-endpoint=10.78.0.1:{lab.port}", QUICK]
    program = lab.program("muster_test_child", "dial", "then", "env", f"{lab.folder}/env-{{rank}}")
    launches = [lab.launch(node, own, program) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_exit(0)
    for worker in said_environments(lab, 2):
        assert worker["MASTER_ADDR"] == "10.78.0.1", worker["MASTER_ADDR"]
        assert not [key for key, value in worker.items() if "10.77." in value], worker


TALK = """
import socket, sys
def text(value):
    return len(value).to_bytes(8, "little") + value
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 20) as client:
    try:
        client.sendall(bytes.fromhex("00cef7853c") + b"\\1" + text(b"k") + text(b"v") + b"\\3" + text(b"k"))
        print("answered" if client.recv(9) else "closed")
    except ConnectionError:
        print("closed")
"""


def talks_to_its_store(lab):
    """A worker's program that sets and gets a key there, then says its environment and waits for the file `go`."""
    with open(f"{lab.folder}/talk.py", "w") as f:
        f.write(TALK)
    with open(f"{lab.folder}/worker.sh", "w") as f:
        f.write(f"""#!/bin/sh
test "$({sys.executable} {lab.folder}/talk.py "$MASTER_ADDR" "$MASTER_PORT")" = answered || exit 9
exec {' '.join(lab.program("muster_test_child", "env", lab.folder + "/env-{rank}", "then", "await", lab.folder + "/go"))}
""")
    os.chmod(f"{lab.folder}/worker.sh", 0o755)
    return [f"{lab.folder}/worker.sh"]


def end_well(lab, launches):
    await_that(lambda: all(os.path.exists(f"{lab.folder}/env-{rank}") for rank in range(2)), "both reach their store")
    open(f"{lab.folder}/go", "w").close()
    for launch in launches:
        launch.await_exit(0)
        assert len(launch.rounds()) == 1, launch.output()


def scenario_C7_a_stranger_is_not_served_by_the_workers_store(lab):
    """A host that is not in the round connects, and writes as a worker would: it is closed, and named once."""
    if not real_network_only(lab):
        return
    program = talks_to_its_store(lab)
    launches = [lab.launch(node, options(lab, 2), program) for node in lab.nodes[:2]]
    await_that(lambda: all(os.path.exists(f"{lab.folder}/env-{rank}") for rank in range(2)), "both reach their store")
    worker = environment_of(f"{lab.folder}/env-0")
    for _ in range(3):
        heard = lab.nodes[2].run(sys.executable, f"{lab.folder}/talk.py", worker["MASTER_ADDR"], worker["MASTER_PORT"])
        assert heard.strip() == "closed", heard
    line = f"the connection from {lab.nodes[2].address}:"
    launches[0].await_output(line)
    assert launches[0].output().count(line) == 1, launches[0].output()
    end_well(lab, launches)


def scenario_C7_a_node_that_comes_by_another_network_than_it_offered_is_served(lab):
    """The daemon is on the first network, the store on the second, which the other node never named."""
    if not real_network_only(lab):
        return
    lab.daemon(lab.nodes[3])
    for number, node in enumerate(lab.nodes[:2], 1):
        node.run("ip", "link", "add", "link", "eth0", "name", "fast0", "type", "macvlan", "mode", "bridge")
        node.run("ip", "addr", "add", f"10.78.0.{number}/24", "dev", "fast0")
        node.run("ip", "link", "set", "fast0", "up")
    program = talks_to_its_store(lab)
    end_well(lab, [lab.launch(lab.nodes[0], options(lab, 2, "--node-rank=0", "--local-addr=10.78.0.1", host=3), program),
                   lab.launch(lab.nodes[1], options(lab, 2, "--node-rank=1", host=3), program)])
    assert {worker["MASTER_ADDR"] for worker in said_environments(lab, 2)} == {"10.78.0.1"}


def scenario_C7_a_node_behind_an_address_translation_is_served(lab):
    """It is seen from an address that it does not have, so nobody can tell from where its workers come."""
    if not real_network_only(lab):
        return
    behind = lab.nodes[1]
    behind.run("iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "eth0", "-j", "SNAT", "--to-source", "10.77.0.98")
    hardware = behind.run("cat", "/sys/class/net/eth0/address").strip()
    for other in (lab.nodes[0], lab.nodes[3]):
        other.run("ip", "neigh", "replace", "10.77.0.98", "lladdr", hardware, "dev", "eth0")
    lab.daemon(lab.nodes[3])
    program = talks_to_its_store(lab)
    end_well(lab, [lab.launch(lab.nodes[0], options(lab, 2, "--node-rank=0", host=3), program),
                   lab.launch(lab.nodes[1], options(lab, 2, "--node-rank=1", host=3), program)])


def scenario_B3_no_name_is_looked_up_when_all_are_numbers(lab):
    """Packets to port 53 are counted in each host."""
    if not real_network_only(lab):
        return

    def asked(node):
        lines = node.run("iptables", "-nvxL", "OUTPUT").splitlines()
        return sum(int(line.split()[0]) for line in lines if "dpt:53" in line)

    for node in lab.nodes[:2]:
        lab.name_table(node, "", f"nameserver {lab.nodes[2].address}\noptions timeout:1 attempts:1\n")
        for protocol in ("udp", "tcp"):
            node.run("iptables", "-A", "OUTPUT", "-p", protocol, "--dport", "53", "-j", "ACCEPT")
    launches = [lab.launch(node, options(lab, 2), say_environment(lab)) for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_exit(0)
    assert [asked(node) for node in lab.nodes[:2]] == [0, 0]
    subprocess.run([*lab.nodes[0].prefix, "getent", "ahosts", "a.name.that.is.not.there"], check=False, timeout=60)
    assert asked(lab.nodes[0]) > 0, "a look-up would have been seen"


def called(name):
    """A command that runs another one on a host of that name."""
    return ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name]


def scenario_B4_B5_B6_B10_B13_no_host_name_reaches_a_worker(lab):
    """{IPv4, IPv6} x {random hex, reverse look-up name, provider's name}: none of which can be looked up."""
    if not real_network_only(lab):
        return
    names = ["3f9c2ab81d07", "1.0.0.0.7.7.d.f.ip6.arpa", "ip-10-77-0-1.zone.internal"]
    for endpoint, master in ((f"10.77.0.1:{lab.port}", "10.77.0.1"), (f"[fd77::1]:{lab.port}", "fd77::1")):
        for name in names:
            own = ["--nnodes=2", f"--rdzv-id=job-{name}", f"--rdzv-endpoint={endpoint}", QUICK]
            program = lab.program("muster_test_child", "dial", "then", "env", f"{lab.folder}/env-{{rank}}")
            launches = [lab.launch(node, own, program, within=called(name)) for node in lab.nodes[:2]]
            for launch in launches:
                launch.await_exit(0)
            for worker in said_environments(lab, 2):
                assert worker["MASTER_ADDR"] == master
                holders = [key for key, value in worker.items() if name in value and "RUN_ID" not in key
                           and "LOG" not in key and "ERROR_FILE" not in key]
                assert not holders, holders
        for pid in lab.pids("musterd"):
            os.kill(pid, signal.SIGKILL)
        await_that(lambda: not lab.pids("musterd"), "no daemon is left")
    program = lab.program("muster_test_child", "dial", "then", "env", f"{lab.folder}/env-{{rank}}")
    alone = lab.launch(lab.nodes[0], ["--standalone", "--nproc-per-node=4"], program, node_id=False,
                       within=called(names[1]))
    alone.await_exit(0)
    assert {worker["MASTER_ADDR"] for worker in said_environments(lab, 4)} == {"127.0.0.1"}


def scenario_B8_a_host_without_IPv6_reads_nothing_of_it(lab):
    if not real_network_only(lab):
        return
    for node in lab.nodes[:2]:
        node.run("sysctl", "-q", "-w", "net.ipv6.conf.all.disable_ipv6=1")
    launches = [lab.launch(node, options(lab, 2, "--nproc-per-node=4"), say_environment(lab))
                for node in lab.nodes[:2]]
    for launch in launches:
        launch.await_exit(0)
        assert not re.search("ipv6|::", launch.output(), re.IGNORECASE), launch.output()


def scenario_B9_a_link_local_endpoint_has_each_hosts_own_interface(lab):
    """The same address, by two names of the interface that leads to it."""
    if not real_network_only(lab):
        return
    lab.nodes[1].run("ip", "link", "set", "eth0", "down")
    lab.nodes[1].run("ip", "link", "set", "eth0", "name", "lan7")
    lab.nodes[1].run("ip", "link", "set", "lan7", "up")
    shown = lab.nodes[0].run("ip", "-6", "-o", "addr", "show", "dev", "eth0", "scope", "link")
    link_local = re.search(r"(fe80::[0-9a-f:]+)/", shown).group(1)
    await_that(lambda: all("tentative" not in node.run("ip", "-6", "addr", "show", "scope", "link")
                           for node in lab.nodes[:2]), "the addresses are usable")
    program = lab.program("muster_test_child", "dial", "then", "env", f"{lab.folder}/env-{{rank}}")
    launches = []
    for node, interface in zip(lab.nodes, ("eth0", "lan7")):
        own = ["--nnodes=2", "--rdzv-id=job", f"--rdzv-endpoint=[{link_local}%{interface}]:{lab.port}", QUICK]
        launches.append(lab.launch(node, own, program))
    for launch in launches:
        launch.await_exit(0)
    masters = [worker["MASTER_ADDR"] for worker in said_environments(lab, 2)]
    assert masters == [f"{link_local}%eth0", f"{link_local}%lan7"], masters


def scenario_B11_a_loopback_endpoint_on_one_node_is_said_at_once(lab):
    """One node names itself by loopback, the other one names it by its address: both say what is wrong."""
    if not real_network_only(lab):
        return
    began = time.monotonic()
    at_home = lab.launch(lab.nodes[0], ["--nnodes=2", "--rdzv-id=job", f"--rdzv-endpoint=127.0.0.1:{lab.port}", QUICK],
                         say_environment(lab))
    other = lab.launch(lab.nodes[1], options(lab, 2), say_environment(lab))
    at_home.await_output("is a loopback address: no other machine can reach it")
    assert time.monotonic() - began < 5
    other.await_output(f"cannot reach the rendezvous at {lab.nodes[0].address}:{lab.port}: Connection refused (ECONNREFUSED)")
    assert time.monotonic() - began < 10


def scenario_C2_port_0_on_one_node_is_resolved_by_the_binder(lab):
    """Two jobs at once, each with torchrun's usual command line for one node."""
    launches = []
    for job in ("a", "b"):
        program = lab.program("muster_test_child", "dial", "then", "env", f"{lab.folder}/env-{job}-{{rank}}")
        own = ["--nnodes=1", "--nproc-per-node=2", f"--rdzv-id={job}", "--rdzv-backend=c10d",
               "--rdzv-endpoint=localhost:0"]
        launches.append(lab.launch(lab.nodes[0], own, program, node_id=False))
    for launch in launches:
        launch.await_exit(0)
    for job in ("a", "b"):
        ports = {environment_of(f"{lab.folder}/env-{job}-{rank}")["MASTER_PORT"] for rank in range(2)}
        assert len(ports) == 1 and ports != {"0"}, ports


def scenario_C5_a_stranger_on_the_endpoints_port_is_named(lab):
    stranger = lab.start(lab.nodes[0], [sys.executable, "-c", f"""
import socket
listener = socket.create_server(("{lab.nodes[0].address}", {lab.port}))
print("there", flush=True)
while True:
    connection, _ = listener.accept()
    connection.sendall(b"SSH-2.0-another-protocol\\r\\n")
    connection.close()
"""])
    stranger.await_output("there")
    launch = lab.launch(lab.nodes[0], options(lab, 2), say_environment(lab))
    launch.await_output(f"held by pid {stranger.process.pid}")
    line = [line for line in launch.output().splitlines() if "held by pid" in line][0]
    assert f"{lab.nodes[0].address}:{lab.port}" in line and "EADDRINUSE" in line, line


if __name__ == "__main__":
    main(globals())
