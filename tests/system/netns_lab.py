"""Hosts for multi-node tests: network namespaces joined by a bridge, or, where those are not allowed, loopback
addresses of this machine.

A Lab is a context manager. Whatever happens, at its end the processes that were started in it are ended, and its
namespaces and its bridge are gone.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

LIMIT_S = 60


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def await_that(condition, what, limit_s=LIMIT_S):
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit_s} s: {what}")
        time.sleep(0.01)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Node:
    """One "host": an address, and a way to start a program there."""

    def __init__(self, name, address, prefix):
        self.name, self.address, self.prefix = name, address, prefix

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


class Launch:
    """A running muster or musterd; its output is in a file."""

    def __init__(self, node, process, output_path):
        self.node, self.process, self.output_path = node, process, output_path

    def output(self):
        with open(self.output_path, errors="replace") as f:
            return f.read()

    def await_output(self, text, limit_s=LIMIT_S):
        await_that(lambda: text in self.output() or self.process.poll() is not None, f"'{text}'", limit_s)
        assert text in self.output(), f"{self.node.name} ended without '{text}':\n{self.output()}"

    def await_exit(self, code=0, limit_s=LIMIT_S):
        try:
            got = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.node.name} did not end within {limit_s} s:\n{self.output()}") from None
        assert got == code, f"{self.node.name}: exit code {got}, not {code}:\n{self.output()}"

    def kill(self, number):
        os.kill(self.process.pid, number)

    def rounds(self):
        """The lines that announce a round, without "muster: "."""
        return [line[8:] for line in self.output().splitlines() if re.match(r"muster: round \d+: ", line)]


class Lab:
    def __init__(self, bin_dir, count=4):
        self.bin, self.count = bin_dir, count
        self.launches, self.namespaces, self.bridge = [], [], None
        self.folder = tempfile.mkdtemp(prefix="muster-lab-")
        self.nodes, self.tables = [], []

    def __enter__(self):
        self.real = self._make_network()
        self.port = 29400
        if not self.real:
            self.port = free_port()  # other tests use the same addresses
            self.nodes = [Node(f"n{n}", f"127.0.0.{n}", []) for n in range(1, self.count + 1)]
        return self

    def _make_network(self):
        tag = f"{os.getpid() % 1000000}"
        bridge = f"mbr{tag}"
        try:
            ip("link", "add", bridge, "type", "bridge")
            self.bridge = bridge
            ip("link", "set", bridge, "up")
            for n in range(1, self.count + 1):
                self._add_namespace(n, tag)
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            print(f"no network namespaces here ({error}): loopback addresses stand in for hosts, which leaves out "
                  "that only one of them can host and that they reach each other over a network")
            self._remove_network()
            self.nodes = []
            return False
        return True

    def _add_namespace(self, n, tag):
        space, outer, inner = f"mns{tag}-{n}", f"mv{tag}-{n}", f"mi{tag}-{n}"
        ip("netns", "add", space)
        self.namespaces.append(space)
        ip("link", "add", outer, "type", "veth", "peer", "name", inner)
        ip("link", "set", inner, "netns", space)
        ip("link", "set", outer, "master", self.bridge, "up")
        ip("-n", space, "link", "set", "lo", "up")
        ip("-n", space, "link", "set", inner, "name", "eth0")
        ip("-n", space, "addr", "add", f"10.77.0.{n}/24", "dev", "eth0")
        ip("-n", space, "addr", "add", f"fd77::{n}/64", "dev", "eth0", "nodad")
        ip("-n", space, "link", "set", "eth0", "up")
        self.nodes.append(Node(f"n{n}", f"10.77.0.{n}", ["ip", "netns", "exec", space]))

    def launch(self, node, options, program, environment=None, node_id=True, within=()):
        """Starts muster on the node; `within`: a command that runs it."""
        own = [f"--node-id={node.name}"] if node_id else []
        return self.start(node, [*within, os.path.join(self.bin, "muster"), *options, *own,
                                 f"--log-dir={self.folder}/logs", *program], environment)

    def daemon(self, node, *options):
        """Starts a standing musterd on the node, and waits until it listens."""
        words = [os.path.join(self.bin, "musterd"), f"--listen={node.address}:{self.port}", *options]
        daemon = self.start(node, words)
        daemon.await_output("listening on")
        return daemon

    def start(self, node, words, environment=None):
        path = os.path.join(self.folder, f"{node.name}-{len(self.launches)}.txt")
        variables = {**os.environ, "TMPDIR": self.folder, **(environment or {})}
        with open(path, "wb") as output:
            process = subprocess.Popen([*node.prefix, *words], stdout=output, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, env=variables, start_new_session=True)
        self.launches.append(Launch(node, process, path))
        return self.launches[-1]

    def musterctl(self, node, *words):
        return node.run(os.path.join(self.bin, "musterctl"), f"--endpoint={self.nodes[0].address}:{self.port}", *words)

    def name_table(self, node, text, resolver=None):
        """What the node's /etc/hosts says, and its /etc/resolv.conf. Real namespaces only."""
        folder = f"/etc/netns/{node.prefix[3]}"
        os.makedirs(folder)
        self.tables.append(folder)
        for name, content in (("hosts", text), ("resolv.conf", resolver)):
            if content is not None:
                with open(f"{folder}/{name}", "w") as f:
                    f.write(content)

    def change_name_table(self, node, text):
        """In place: the file is bound into the namespace's processes."""
        with open(f"/etc/netns/{node.prefix[3]}/hosts", "r+") as f:
            f.truncate()
            f.write(text)

    def program(self, name, *words):
        return [os.path.join(self.bin, name), *words]

    def pids(self, name):
        """Processes of this lab that run the program `name`."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/environ", "rb") as f:
                    ours = f"TMPDIR={self.folder}".encode() in f.read().split(b"\0")
                with open(f"/proc/{entry}/comm") as f:
                    if ours and f.read().strip() == name[:15]:
                        found.append(int(entry))
            except OSError:
                continue
        return found

    def __exit__(self, kind, value, traceback):
        for launch in self.launches:
            if launch.process.poll() is None:
                launch.process.kill()
                launch.process.wait(LIMIT_S)
        for pid in self.pids("musterd"):
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                continue
        self._remove_network()
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            for launch in self.launches:
                print(f"---- {launch.node.name} ({launch.output_path})\n{launch.output()}")
            for folder, _, names in os.walk(os.path.join(self.folder, "logs")):
                if "musterd.log" in names:
                    with open(os.path.join(folder, "musterd.log")) as f:
                        print(f"---- {folder}/musterd.log\n{f.read()}")

    def _remove_network(self):
        for space in self.namespaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)
        self.namespaces = []
        for folder in self.tables:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # tables of others
                os.rmdir(os.path.dirname(folder))
        if self.bridge:
            subprocess.run(["ip", "link", "del", self.bridge], capture_output=True, check=False)
        self.bridge = None
