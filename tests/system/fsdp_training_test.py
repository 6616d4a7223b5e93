"""fsdp_mlp on four workers under muster learns Fashion-MNIST, with its state sharded.

usage: fsdp_training_test.py BIN_DIR OPTIONS...
With MUSTER_FULL_TESTS: three epochs to an accuracy of 0.85, whatever the options say.
"""

import json
import os
import subprocess
import sys
import tempfile

from jobs import forget_settings

LIMIT_S = 540


def main():
    forget_settings()
    bin_dir, options = sys.argv[1], sys.argv[2:]
    least = 0 if "--max-steps=20" in options else 0.75
    if os.environ.get("MUSTER_FULL_TESTS"):
        least, options = 0.85, ["--epochs=3"]
    with tempfile.TemporaryDirectory() as folder:
        metrics = os.path.join(folder, "metrics")
        command = [os.path.join(bin_dir, "muster"), "--standalone", "--nproc-per-node=4", f"--log-dir={folder}/logs",
                   os.path.join(bin_dir, "fsdp_mlp"), "--hidden-dim=256", f"--metrics-file={metrics}", *options]
        result = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        print(result.stdout, result.stderr, sep="\n")
        if result.returncode != 0:
            sys.exit(f"exit code {result.returncode}")
        with open(metrics, encoding="utf-8") as f:
            reached = [line["test_accuracy"] for line in map(json.loads, f) if line["event"] == "epoch"]
        if not reached or max(reached) < least:
            sys.exit(f"test accuracies {reached}; {least} is wanted")
        if "16 bytes x parameters / 4" not in result.stdout:
            sys.exit("the memory of the model's state is not printed")


main()
