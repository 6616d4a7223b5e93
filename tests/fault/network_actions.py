"""The sentences that break the network between hosts, and mend it. Firewalls in the hosts' own namespaces do it."""

from functools import wraps

from sentences import sentence

DROP, RESET = ["-j", "DROP"], ["-j", "REJECT", "--reject-with", "tcp-reset"]


def network_sentence(pattern):
    """One that is never carried out where hosts are addresses of this machine: it would cut that off."""

    def register(act):
        @wraps(act)
        def act_on_hosts_of_their_own(run, *values):
            assert run.lab.real, "needs a network for each host; here it would break this machine's own"
            act(run, *values)
        sentence(pattern, needs_network=True)(act_on_hosts_of_their_own)
        return act_on_hosts_of_their_own

    return register


def firewall(run, name, chain, *rule):
    run.hosts[name].run("iptables", "-A", chain, *rule)


@network_sentence("cut off HOSTS")
def cut_off(run, names):
    """Packets vanish both ways, and no end hears of it."""
    for name in run.scenario.resolve(names):
        run.mark_down(name, "cut off")
        run.hosts[name].cut_off()


@network_sentence("cut off what HOSTS send")
def cut_off_sending(run, names):
    for name in run.scenario.resolve(names):
        run.mark_down(name, "cannot send")
        firewall(run, name, "OUTPUT", "-o", "eth0", *DROP)


@network_sentence("cut off what HOSTS receive")
def cut_off_receiving(run, names):
    for name in run.scenario.resolve(names):
        run.mark_down(name, "cannot receive")
        firewall(run, name, "INPUT", "-i", "eth0", *DROP)


@network_sentence("cut off HOST from the daemon")
def cut_off_from_daemon(run, name):
    """But not from the other nodes."""
    run.mark_down(name, "cut off from the daemon")
    address, port = run.hosts[run.scenario.daemon or "n1"].address, str(run.lab.port)
    firewall(run, name, "OUTPUT", "-d", address, "-p", "tcp", "--dport", port, *DROP)
    firewall(run, name, "INPUT", "-s", address, "-p", "tcp", "--sport", port, *DROP)


@network_sentence("cut off HOST from its peers")
def cut_off_from_peers(run, name):
    """But not from the daemon, which has a host of its own."""
    assert run.scenario.daemon, "this needs a standing daemon"
    run.mark_down(name, "cut off from its peers")
    daemon = run.hosts[run.scenario.daemon].address
    firewall(run, name, "OUTPUT", "-o", "eth0", "!", "-d", daemon, *DROP)
    firewall(run, name, "INPUT", "-i", "eth0", "!", "-s", daemon, *DROP)


@network_sentence("reset the connections of HOST")
def reset(run, name):
    """Each end that sends gets a reset, until the host is reconnected."""
    run.mark_down(name, "connections reset")
    firewall(run, name, "OUTPUT", "-o", "eth0", "-p", "tcp", *RESET)
    firewall(run, name, "INPUT", "-i", "eth0", "-p", "tcp", *RESET)


@network_sentence("reset the connections of HOST to the daemon")
def reset_to_daemon(run, name):
    address, port = run.hosts[run.scenario.daemon or "n1"].address, str(run.lab.port)
    firewall(run, name, "OUTPUT", "-d", address, "-p", "tcp", "--dport", port, *RESET)


@network_sentence("lose PERCENT percent of what HOST receives")
def lose_packets(run, percent, name):
    firewall(run, name, "INPUT", "-i", "eth0", "-m", "statistic", "--mode", "random", "--probability",
             str(percent / 100), *DROP)


@network_sentence("reconnect HOSTS")
def reconnect(run, names):
    for name in run.scenario.resolve(names):
        run.hosts[name].connect_again()
        run.mark_up(name)


@network_sentence("let HOST have the address ADDRESS")
def move(run, name, address):
    """The old one is gone, with every connection that used it."""
    run.hosts[name].run("ip", "addr", "flush", "dev", "eth0", "scope", "global")
    run.hosts[name].run("ip", "addr", "add", f"{address}/24", "dev", "eth0")
    run.hosts[name].address = address


@sentence("take the port PORT on HOST")
def take_port(run, port, name):
    """By a program that has nothing to do with the job."""
    host = run.hosts[name]
    code = (f"import socket, time; s = socket.create_server(('{host.address}', {port})); "
            "print('taken', flush=True); time.sleep(600)")
    helper = run.lab.start(host, ["python3", "-c", code])
    helper.await_output("taken")
    run.helpers.append(helper)


@sentence("grab the port PORT on HOST as soon as it is free")
def grab_port(run, port, name):
    """A program that tries all the time, and says when it has it."""
    host = run.hosts[name]
    code = (f"import socket, time\nwhile True:\n try: s = socket.create_server(('{host.address}', {port})); break\n"
            " except OSError: time.sleep(0.0005)\nprint('grabbed', flush=True); time.sleep(600)")
    helper = run.lab.start(host, ["python3", "-c", code])
    run.helpers.append(helper)
