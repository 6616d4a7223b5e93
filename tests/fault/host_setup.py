"""What a scenario's head asks for: disks of their own, limits, clocks and links of hosts, the audit of samples."""

import contextlib
import os
import shutil
import subprocess
import sys

import machine_memory
import slow_link
from run_registry import RunRegistry

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
BREAK = "break the disk of FOLDER"
LEAST_IMAGE_BYTES = 16 << 20
UNITS = {"K": 1 << 10, "M": 1 << 20}


def in_bytes(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


class LeftOut(Exception):
    """This machine does not allow what the scenario needs."""


def mount_tmpfs(path, size):
    """False where this machine does not allow it."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "muster-lab", path]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def mount_image(path, size):
    """A file system that can have errors. False where this machine does not allow it."""
    image = f"{path}.ext4"
    with open(image, "wb") as f:
        f.truncate(max(in_bytes(size), LEAST_IMAGE_BYTES))
    commands = (["mkfs.ext4", "-q", "-F", image], ["mount", "-o", "loop", image, path])
    return all(shutil.which(words[0]) and subprocess.run(words, capture_output=True, check=False).returncode == 0
               for words in commands)


def can_mount():
    with RunRegistry() as registry:
        path = registry.make_folder("muster-lab-")
        registry.note("mount", path)
        return mount_tmpfs(path, "64K")


class HostSetup:
    def __init__(self, run):
        self._run, self._scenario = run, run.scenario
        self._frozen = ""  # the cgroup of frozen workers
        self._memory_before = clock_memory()
        for name, text in self._scenario.secrets.items():
            self._write(f"{run.folder}/{name}", text + "\n")
            os.chmod(f"{run.folder}/{name}", 0o600)
        for folder, size in self._scenario.disks.items():
            self._mount(folder, size)
        for name in self._scenario.clocks:
            self.set_clock(name, self._scenario.clocks[name])
        for name, (delay_s, rate) in self._scenario.links.items():
            self._slow_down(name, delay_s, rate)

    def _mount(self, folder, size):
        path = f"{self._run.folder}/{folder}"
        os.makedirs(path)
        self._run.lab.registry.note("mount", path)
        if self._breaks(folder):
            if not mount_image(path, size):
                raise LeftOut("needs mkfs.ext4 and loop devices")
        elif not mount_tmpfs(path, size):
            raise LeftOut("needs to mount a tmpfs")

    def _breaks(self, folder):
        return any(step.sentence.pattern == BREAK and step.values[0] == folder for step in self._scenario.steps)

    def _slow_down(self, name, delay_s, rate):
        if not self._run.lab.real:
            raise LeftOut("needs a network for each host")
        host, port = self._run.hosts[name], "9999"
        words = [sys.executable, slow_link.__file__, port, str(delay_s * 1000), str(in_bytes(rate))]
        proxy = self._run.lab.start(host, words)
        proxy.await_output("ready")
        self._run.helpers.append(proxy)
        for rule in slow_link.RULES:
            host.run("iptables", *rule, port)

    def clock_file(self, name):
        return f"{self._run.folder}/clock-{name}"

    def set_clock(self, name, change):
        """Programs that started with this clock follow it."""
        if not os.path.exists(FAKETIME):
            raise LeftOut("needs the package faketime")
        with open(f"{self.clock_file(name)}.new", "w") as f:
            f.write(change + "\n")
        os.replace(f"{self.clock_file(name)}.new", self.clock_file(name))

    def _under_clock(self, name):
        """Set by the last command before the launcher: those before it still have this machine's shared memory, and
        the library would leave its own there.
        """
        if name not in self._scenario.clocks:
            return []
        return ["env", f"LD_PRELOAD={FAKETIME}", f"FAKETIME_TIMESTAMP_FILE={self.clock_file(name)}",
                "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"]

    def remove_clock_memory(self):
        """What the library left of killed programs, where hosts have no shared memory of their own."""
        if not self._scenario.clocks or self._run.lab.real:
            return
        for name in clock_memory() - self._memory_before:
            if not os.path.exists(f"/proc/{name.rsplit('_', 1)[1]}"):
                with contextlib.suppress(OSError):
                    os.unlink(f"{machine_memory.SHARED_MEMORY}/{name}")

    def freeze(self, pid):
        """Of the two kinds of cgroups only the first keeps a frozen process from being killed."""
        folder = f"/sys/fs/cgroup/freezer{own_cgroup('freezer')}/muster-lab-{os.getpid()}-frozen"
        self._run.lab.registry.note("cgroup", folder)
        try:
            os.makedirs(folder, exist_ok=True)
            self._write(f"{folder}/cgroup.procs", str(pid))
            self._write(f"{folder}/freezer.state", "FROZEN")
        except ProcessLookupError:
            raise AssertionError(f"process {pid} cannot be frozen: it has just ended") from None
        except OSError:
            raise LeftOut("needs the freezer of cgroups v1") from None
        self._frozen = folder

    def thaw(self):
        if self._frozen:
            self._write(f"{self._frozen}/freezer.state", "THAWED")

    @staticmethod
    def _write(path, text):
        with open(path, "w") as f:
            f.write(text)

    def within(self, name):
        """A command that starts another one under the host's limits, and with its clock."""
        words = ["sh", "-c", '"$@"; exit $?', "sh"] if name in self._scenario.parents else []
        for kind, value in self._scenario.limits.get(name, {}).items():
            if kind == "descriptors":
                words += ["prlimit", f"--nofile={value}:{value}", "--"]
            else:
                words += ["sh", "-c", f'echo $$ > {self._cgroup(name, kind, value)}/cgroup.procs && exec "$@"', "sh"]
        return words + self._under_clock(name)

    def _cgroup(self, name, kind, value):
        controller, limit_file = {"memory": ("memory", "memory.limit_in_bytes"), "processes": ("pids", "pids.max")}[kind]
        number = str(in_bytes(value)) if kind == "memory" else value
        leaf = f"muster-lab-{os.getpid()}-{name}-{kind}"
        for top, file in ((f"/sys/fs/cgroup/{controller}{own_cgroup(controller)}", limit_file),
                          ("/sys/fs/cgroup", {"memory": "memory.max", "processes": "pids.max"}[kind])):
            folder = f"{top}/{leaf}"
            try:
                self._run.lab.registry.note("cgroup", folder)
                os.makedirs(folder, exist_ok=True)
                with open(f"{folder}/{file}", "w") as f:
                    f.write(number)
                return folder
            except OSError:
                continue
        raise LeftOut(f"needs a cgroup for {kind}")

    def audit_options(self, program):
        """Where the trainer can write which samples it used."""
        if not self.audits(program):
            return []
        return [f"--audit-dir={self._run.folder}/audit"]

    def audits(self, program):
        if not os.path.exists(f"{self._run.bin}/muster_audit"):
            return False
        shown = subprocess.run([f"{self._run.bin}/{program}", "--help"], capture_output=True, text=True, check=False)
        return "--audit-dir" in shown.stdout


def clock_memory():
    """Names of the clock library's files in this machine's shared memory; each ends in the pid of who made it."""
    return {name for name in machine_memory.files() if "faketime_" in name}


def own_cgroup(controller):
    with open("/proc/self/cgroup") as f:
        for line in f:
            if f":{controller}:" in line:
                return line.rstrip("\n").split(":", 2)[2]
    return ""
