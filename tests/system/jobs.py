"""Runs the real muster on this machine, for tests in Python: one job, its output, its end, what it left."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from job_settings import forget_settings  # noqa: E402

LIMIT_S = 60
SDK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../worker_sdk/python")


def await_that(condition, what, limit_s=LIMIT_S):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit_s} s: {what() if callable(what) else what}"
        time.sleep(0.01)


class Job:
    """A context manager: at its end the job is over and its folder is gone."""

    def __init__(self, bin_dir):
        self.bin = bin_dir
        self.folder = tempfile.mkdtemp(prefix="muster-job-")
        self.process = None

    def __enter__(self):
        return self

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def start(self, options, program, variables=None):
        environment = {**os.environ, "PYTHONPATH": SDK, **(variables or {})}
        self.process = subprocess.Popen(
            [os.path.join(self.bin, "muster"), "--rdzv-id=job", f"--log-dir={self.path('logs')}", *options, *program],
            stdout=open(self.path("output"), "wb"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment)

    def output(self):
        with open(self.path("output"), errors="replace") as f:
            return f.read()

    def await_output(self, text):
        await_that(lambda: text in self.output() or self.process.poll() is not None, lambda: f"{text!r} in\n{self.output()}")
        assert text in self.output(), self.output()

    def await_exit(self, code):
        got = self.process.wait(LIMIT_S)
        assert got == code, f"exit code {got}, not {code}:\n{self.output()}"

    def status(self):
        with open(self.path("logs/job/status.json")) as f:
            return json.load(f)

    def __exit__(self, kind, value, traceback):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def get_health(path):
    """The status and the JSON of a health page behind a Unix socket."""
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(LIMIT_S)
        end.connect(path)
        end.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        answer = b""
        while piece := end.recv(65536):
            answer += piece
    head, body = answer.split(b"\r\n\r\n", 1)
    return int(head.split()[1]), json.loads(body)


def run_named(cases):
    """FILE.py BIN_DIR CASE, with CASE one of the functions named case_* of the file."""
    forget_settings()
    with Job(sys.argv[1]) as job:
        cases["case_" + sys.argv[2]](job)
