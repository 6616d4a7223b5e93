"""Hosts on one machine: network namespaces on a bridge, each with an address of its own; or, where those are not
allowed, loopback addresses of this machine.
"""

import itertools
import os
import shlex
import subprocess

LIMIT_S = 60
SUBNET, SUBNET6 = "10.77.0", "fd77:"
NOT_HERE = ("not permitted", "denied", "not supported", "Read-only")  # said by ip; anything else is a fault of this code
SERIAL, SERIAL_LETTERS = itertools.count(), "abcdefghijklmnopqrstuvwxyz"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Host:
    """An address, and a way to start a program there. `namespace` is None where it is a loopback address."""

    def __init__(self, name, address, namespace=None, prefix=()):
        self.name, self.address, self.namespace, self.prefix = name, address, namespace, list(prefix)

    def run(self, *words):
        """Runs a command there to its end; its output."""
        done = subprocess.run([*self.prefix, *words], check=False, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, f"{' '.join(words)} on {self.name}: {done.stdout}{done.stderr}"
        return done.stdout

    # Real namespaces only. Packets vanish, as they do when a cable is pulled somewhere: no end hears of it.
    def cut_off(self):
        for chain, side in (("INPUT", "-i"), ("OUTPUT", "-o")):
            self.run("iptables", "-A", chain, side, "eth0", "-j", "DROP")

    def connect_again(self):
        self.run("iptables", "-F")


class HostNetwork:
    """`count` hosts n1, n2, ...; all that is made is noted in `registry`, which removes it.

    With an `own` folder each host has its own host name and name table, which knows all the others, and no name server;
    and all of them have their shared memory in that folder.
    """

    def __init__(self, registry, count, own=None):
        self._registry, self._count, self._own = registry, count, own
        # Of its own for each network: the kernel takes its time to remove the interfaces of the one before.
        self._tag = f"{os.getpid() % 1000000}{SERIAL_LETTERS[next(SERIAL) % len(SERIAL_LETTERS)]}"
        self.hosts = []
        self.real = self._make()
        if not self.real:
            self.hosts = [Host(f"n{n}", f"127.0.0.{n}") for n in range(1, count + 1)]

    def _make(self):
        if os.environ.get("MUSTER_LAB_LOOPBACK"):
            print("MUSTER_LAB_LOOPBACK is set: loopback addresses stand in for hosts")
            return False
        bridge = f"mbr{self._tag}"
        try:
            self._registry.note("link", bridge)
            ip("link", "add", bridge, "type", "bridge")
            ip("link", "set", bridge, "up")
            for n in range(1, self._count + 1):
                self.hosts.append(self._add_host(n, bridge))
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            why = (getattr(error, "stderr", None) or str(error)).strip()
            if not isinstance(error, FileNotFoundError) and not any(words in why for words in NOT_HERE):
                raise AssertionError(f"{' '.join(error.cmd)}: {why}") from None
            print(f"no network namespaces here ({why}): loopback addresses stand in for hosts, which leaves out "
                  "that only one of them can host and that they reach each other over a network")
            return False
        return True

    def _add_host(self, n, bridge):
        space, outer, inner = f"mns{self._tag}-{n}", f"mv{self._tag}-{n}", f"mi{self._tag}-{n}"
        self._registry.note("namespace", space)
        ip("netns", "add", space)
        ip("link", "add", outer, "type", "veth", "peer", "name", inner)
        ip("link", "set", inner, "netns", space)
        ip("link", "set", outer, "master", bridge, "up")
        ip("-n", space, "link", "set", "lo", "up")
        ip("-n", space, "link", "set", inner, "name", "eth0")
        ip("-n", space, "addr", "add", f"{SUBNET}.{n}/24", "dev", "eth0")
        ip("-n", space, "addr", "add", f"{SUBNET6}:{n}/64", "dev", "eth0", "nodad")
        ip("-n", space, "link", "set", "eth0", "up")
        prefix = ["ip", "netns", "exec", space]
        host = Host(f"n{n}", f"{SUBNET}.{n}", space, prefix)
        if self._own:
            self.write_table(host, "hosts", self._name_table())
            self.write_table(host, "resolv.conf", "# no name server\n")
            host.prefix = self._prefix_of_its_own(host)
        return host

    def _prefix_of_its_own(self, host):
        """Not by `ip netns exec`, which hides cgroups: it mounts another /sys."""
        binds = [(self.table_path(host, "hosts"), "/etc/hosts"), (self.table_path(host, "resolv.conf"), "/etc/resolv.conf"),
                 (self._own, "/dev/shm")]
        mounts = " && ".join(f"mount --bind {shlex.quote(what)} {where}" for what, where in binds)
        return ["nsenter", f"--net=/run/netns/{host.namespace}", "unshare", "--uts", "--mount", "sh", "-c",
                f'hostname {host.name} && {mounts} && exec "$@"', "sh"]

    def _name_table(self):
        names = "".join(f"{SUBNET}.{n} n{n}\n" for n in range(1, self._count + 1))
        return f"127.0.0.1 localhost\n::1 localhost\n{names}"

    def table_path(self, host, name):
        return f"/etc/netns/{host.namespace}/{name}"

    def write_table(self, host, name, text):
        """What the host sees as /etc/NAME; in place if it is there, since it is bound into the host's processes."""
        path = self.table_path(host, name)
        folder = os.path.dirname(path)
        if not os.path.exists(folder):
            self._registry.note("folder", folder)
            os.makedirs(folder)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
