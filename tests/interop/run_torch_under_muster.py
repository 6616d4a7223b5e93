"""Runs torch_ddp.py under the real muster and checks what the ranks wrote.

usage: run_torch_under_muster.py MUSTER PYTHON WORKERS [restart]
PYTHON is an interpreter that has PyTorch. With 'restart', rank 1 is killed in the middle and must come back from
the checkpoint; the final parameters must be those of an
undisturbed run within rounding.
"""

import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 120


def run(muster, python, workers, folder, extra):
    command = [muster, "--standalone", f"--nproc-per-node={workers}", "--max-restarts=1", f"--log-dir={folder}/logs",
               os.path.join(HERE, "torch_ddp.py"), folder, *extra]
    environment = dict(os.environ, PYTHON_EXEC=python)
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    if result.returncode != 0:
        sys.exit(f"exit code {result.returncode} of {' '.join(command)}\n{result.stdout}\n{result.stderr}")
    reports = []
    for rank in range(workers):
        with open(os.path.join(folder, f"rank{rank}.json")) as f:
            reports.append(json.load(f))
    return reports


def main():
    muster, python, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        calm = run(muster, python, workers, folder, [])
    sums = {report["sum"] for report in calm}
    assert len(sums) == 1, f"ranks disagree on the parameters: {sums}"
    assert all(report["start"] == 0 for report in calm), calm
    if "restart" in sys.argv[4:]:
        with tempfile.TemporaryDirectory() as folder:
            disturbed = run(muster, python, workers, folder, ["--fail-once-at", "5"])
        assert all(report["start"] == 5 for report in disturbed), f"did not go on from step 5: {disturbed}"
        # Not bit for bit: DDP rebuilds its buckets after the first step, which moves the order of sums.
        assert all(math.isclose(report["sum"], calm[0]["sum"], rel_tol=1e-6) for report in disturbed), (calm, disturbed)
    print(f"PyTorch {calm[0]['torch']}: {workers} workers, parameters equal on all ranks")


if __name__ == "__main__":
    main()
