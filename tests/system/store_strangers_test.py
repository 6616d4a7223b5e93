"""What is no store client leaves a running job unharmed: store_strangers_test.py BIN_DIR

500 idle connections, half requests, HTTP, a TLS hello, random bytes and absurd lengths reach the store of a job that
trains; the job ends well, its agent stays small, and the screen has a line or two about it, not hundreds.
"""

import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading

from jobs import forget_settings

IDLE = 500
STEPS = 100 if os.environ.get("MUSTER_SANITIZER") else 938  # either is longer than what the strangers do
NOISE = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls hello": bytes.fromhex("1603010200010001fc0303") + bytes(64),
    "half a request": b"\x09\x5d\x62\x85\x3c\x00\x02\x00\x00\x00",
    "2^63 bytes": b"\x01" + (2**63 - 1).to_bytes(8, "little"),
    "-1 keys": b"\x05" + (2**64 - 1).to_bytes(8, "little"),
    "random": random.Random(7).randbytes(4096),
}


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


def disturb(port, kept):
    for _ in range(IDLE):
        kept.append(socket.create_connection(("127.0.0.1", port), timeout=30))
    for noise in NOISE.values():
        for _ in range(10):
            stranger = socket.create_connection(("127.0.0.1", port), timeout=30)
            try:
                stranger.sendall(noise)
            except (BrokenPipeError, ConnectionResetError):
                pass  # closed in the middle of it: as it should be
            kept.append(stranger)


def main(programs):
    forget_settings()
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.Popen(
            [f"{programs}/muster", "--standalone", "--nproc-per-node=2", f"--log-dir={folder}/logs",
             f"{programs}/ddp_mnist", "--epochs=2", f"--max-steps={STEPS}", f"--metrics-file={folder}/metrics"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        killer = threading.Timer(300, job.kill)
        killer.start()
        lines, kept, before, during = [], [], None, None
        for line in job.stdout:
            lines.append(line)
            master = re.search(r"master 127\.0\.0\.1:(\d+)", line)
            if master and before is None:
                before = resident_kib(job.pid)
                disturb(int(master.group(1)), kept)
                during = resident_kib(job.pid)
        killer.cancel()
        screen = "".join(lines)
        assert job.wait() == 0, screen
        assert len(kept) == IDLE + 10 * len(NOISE), screen
        assert during - before < 4 * 1024, f"the agent grew from {before} to {during} KiB"
        told = [line for line in lines if "127.0.0.1" in line and "master" not in line]
        # One for each kind of reason: no request, and the limits of keys, values and counts.
        assert 1 <= len(told) <= 4, f"{len(told)} lines about the strangers:\n{screen}"
        assert os.path.getsize(f"{folder}/metrics") > 0


main(sys.argv[1])
