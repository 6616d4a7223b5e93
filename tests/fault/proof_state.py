"""Proof 1, state: the final parameters are those of an undisturbed run, bit by bit where the world has a fixed size;
where it has not, the loss lies within a band around the undisturbed one's.
"""

import hashlib
import json
import os
import subprocess
import tempfile

import references
from fault_run import PATIENCE_S, digest
from run_registry import MARK

LOSS_BAND = 0.25  # of the undisturbed loss: other batch sizes and orders, fewer or more steps


def last_loss(lines):
    losses = [event["loss"] for event in lines if event["event"] == "epoch"]
    return losses[-1] if losses else None


def undisturbed(run):
    """{"digest", "loss"} of the same program on one host, with as many workers."""
    scenario = run.scenario
    workers = scenario.nodes[1] * scenario.workers_per_node
    name, *options = scenario.program
    options = run.filled(options)
    program = f"{run.bin}/{name}"
    key = hashlib.sha256(json.dumps([digest(program), options, workers]).encode()).hexdigest()[:24]
    if known := references.find(run.bin, key):
        return known
    # In the run's own folder and with its mark: should the harness be killed, the next one finds both.
    with tempfile.TemporaryDirectory(prefix="reference-", dir=run.folder) as folder:
        words = [f"{run.bin}/muster", "--standalone", f"--nproc-per-node={workers}", f"--log-dir={folder}/logs", program,
                 *options, f"--export={folder}/final", f"--metrics-file={folder}/metrics"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=4 * PATIENCE_S,
                              env={**os.environ, "OMP_NUM_THREADS": "1", MARK: run.folder})
        assert done.returncode == 0, f"the undisturbed run failed: {done.stdout}{done.stderr}"
        with open(f"{folder}/metrics", encoding="utf-8") as f:
            found = {"digest": digest(f"{folder}/final"), "loss": last_loss([json.loads(line) for line in f])}
    references.keep(run.bin, key, found)
    return found


def check(run):
    """A sentence on what was found; AssertionError otherwise."""
    if not run.succeeded():
        return "state: not compared, the job was not to end well"
    calm = undisturbed(run)
    if not run.scenario.is_elastic:
        own = digest(f"{run.folder}/final.safetensors")
        assert own == calm["digest"], f"state: the parameters are {own}, undisturbed {calm['digest']}"
        return f"state: bit-identical to an undisturbed run ({own[:12]})"
    loss = last_loss([event for _, event in run.metrics()])
    low, high = calm["loss"] * (1 - LOSS_BAND), calm["loss"] * (1 + LOSS_BAND)
    assert low <= loss <= high, f"state: the loss is {loss}, not within {low:.4f} to {high:.4f}"
    return f"state: loss {loss:.4f}, undisturbed {calm['loss']:.4f}"
