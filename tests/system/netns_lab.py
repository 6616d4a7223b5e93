"""A lab for multi-node tests: hosts (see host_network.py) and the launchers and daemons that run on them.

A Lab is a context manager. Whatever happens, at its end the processes that were started in it are ended, and its
namespaces and its bridge are gone; should it be killed itself, the next lab removes them.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from host_network import HostNetwork  # noqa: E402
from run_processes import MARK, processes_in, processes_of, reap_adopted, send  # noqa: E402
from run_registry import RunRegistry  # noqa: E402

LIMIT_S = 60


def await_that(condition, what, limit_s=LIMIT_S):
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit_s} s: {what}")
        time.sleep(0.01)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class HasEnded(AssertionError):
    """Somebody was to be sent a signal, and is there no more."""


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
        """HasEnded if there is nobody to be sent it: the number of a process that has ended may be another's by now."""
        if (code := self.process.poll()) is not None:
            name = os.path.basename(self.output_path)
            raise HasEnded(f"no {signal.Signals(number).name} was sent: the process of {name} has ended, exit code {code}")
        os.kill(self.process.pid, number)

    def rounds(self):
        """The lines that announce a round, without "muster: "."""
        return [line[8:] for line in self.output().splitlines() if re.match(r"muster: round \d+: ", line)]


class Lab:
    def __init__(self, bin_dir, count=4, own_names=False):
        self.bin, self.count, self.own_names = bin_dir, count, own_names
        self.launches, self.nodes = [], []

    def __enter__(self):
        self.registry = RunRegistry()
        try:
            self._set_up()
        except BaseException:
            self.registry.close()
            raise
        return self

    def _set_up(self):
        self.folder = self.registry.make_folder("muster-lab-")
        self.registry.note("processes", self.folder)
        self.shared_memory = f"{self.folder}/shm"
        if self.own_names:
            os.mkdir(self.shared_memory, 0o777)
        self.network = HostNetwork(self.registry, self.count, self.shared_memory if self.own_names else None)
        self.nodes, self.real = self.network.hosts, self.network.real
        self.port = 29400 if self.real else free_port()  # other tests use the same loopback addresses

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
        variables = {**os.environ, "TMPDIR": self.folder, MARK: self.folder, **(environment or {})}
        with open(path, "wb") as output:
            process = subprocess.Popen([*node.prefix, *words], stdout=output, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, env=variables, start_new_session=True)
        self.launches.append(Launch(node, process, path))
        self._reap()
        return self.launches[-1]

    def musterctl(self, node, *words):
        return node.run(os.path.join(self.bin, "musterctl"), f"--endpoint={self.nodes[0].address}:{self.port}", *words)

    def name_table(self, node, text, resolver=None):
        """What the node's /etc/hosts says, and its /etc/resolv.conf. Real namespaces only."""
        for name, content in (("hosts", text), ("resolv.conf", resolver)):
            if content is not None:
                self.network.write_table(node, name, content)

    def change_name_table(self, node, text):
        self.network.write_table(node, "hosts", text)

    def program(self, name, *words):
        return [os.path.join(self.bin, name), *words]

    def _reap(self):
        reap_adopted({launch.process.pid for launch in self.launches})

    def all_pids(self):
        """Processes of this lab, on whatever host."""
        return sorted({*processes_of(self.folder), *self.pids_on(*self.nodes)})

    @staticmethod
    def pids_on(*nodes):
        """What is in the nodes' own networks, whoever started it; nothing where they have none."""
        return processes_in(*(node.namespace for node in nodes if node.namespace))

    def pids(self, name):
        """Processes of this lab that run the program `name`."""
        found = []
        for pid in self.all_pids():
            try:
                with open(f"/proc/{pid}/comm") as f:
                    if f.read().strip() == name[:15]:
                        found.append(pid)
            except OSError:
                continue
        return found

    def __exit__(self, kind, value, traceback):
        try:
            self._end_launches()
            if kind is not None:
                self.registry.keep(self.folder)  # first: whoever reads what is shown may have gone
                self.show_outputs()
        finally:
            self.registry.close()
            self._reap()

    def _end_launches(self):
        """What does not end is left to the registry, which says so."""
        for launch in self.launches:
            if launch.process.poll() is None:
                launch.process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    launch.process.wait(LIMIT_S)
        for pid in self.pids("musterd"):
            send(pid, signal.SIGTERM)

    def show_outputs(self):
        for launch in self.launches:
            print(f"---- {launch.node.name} ({launch.output_path})\n{launch.output()}")
        for folder, _, names in os.walk(os.path.join(self.folder, "logs")):
            if "musterd.log" in names:
                with open(os.path.join(folder, "musterd.log")) as f:
                    print(f"---- {folder}/musterd.log\n{f.read()}")
