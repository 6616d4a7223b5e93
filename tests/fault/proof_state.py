"""Proof 1, state: the final parameters are those of an undisturbed run, bit by bit where the world has a fixed size;
where it has not, the loss lies within a band around the undisturbed one's.
"""

import hashlib
import json
import os
import subprocess
import tempfile

import proof_samples
import references
from fault_run import HERE, PATIENCE_S, SDK, digest
from run_processes import MARK

LOSS_BAND = 0.25  # of the undisturbed loss: other batch sizes and orders, fewer or more steps
LAST_STEPS = 50  # over which the loss is averaged where no epoch's is told
# PyTorch's own files differ in more than what they hold: names, times.
TORCH_DIGEST = """import hashlib, sys, torch
with open(sys.argv[1], "rb") as f:  # a path that ends with .safetensors is taken for such a file
    state = torch.load(f, map_location="cpu")
text = hashlib.sha256()
for name in sorted(state):
    text.update(f"{name} {state[name].dtype} {tuple(state[name].shape)}".encode())
    text.update(state[name].contiguous().numpy().tobytes())
print(text.hexdigest())"""


def last_loss(events):
    """Of the last epoch; of the last steps, where a program has no epochs. None if there is neither."""
    losses = [event["loss"] for event in events if event["event"] == "epoch"]
    if losses:
        return losses[-1]
    losses = [event["loss"] for event in events if event["event"] == "step"][-LAST_STEPS:]
    return sum(losses) / len(losses) if losses else None


def written(run, path, option):
    """The path of what the program was to write there."""
    assert os.path.isfile(path), f"state: {' '.join(run.scenario.program)} has not written {path}, as its --{option} wants"
    return path


def parameters(run, path):
    """A digest of the parameters in that file."""
    written(run, path, "export")
    if run.scenario.program[0] != "python":
        return digest(path)
    done = subprocess.run([run.python, "-c", TORCH_DIGEST, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"state: {path} cannot be read: {done.stderr}"
    return done.stdout.strip()


def version_of(run):
    """What the undisturbed result depends on, besides options and workers."""
    name, *options = run.scenario.program
    if name != "python":
        return [digest(f"{run.bin}/{name}")]
    told = subprocess.run([run.python, "-c", "import sys, torch; print(sys.version, torch.__version__)"],
                          capture_output=True, text=True, check=True).stdout
    return [digest(os.path.join(HERE, options[0])), told]


def train_undisturbed(run, workers, folder):
    name, *options = run.scenario.program
    options = run.filled(options)
    own = [f"--export={folder}/final", f"--metrics-file={folder}/metrics"]
    program = [f"{run.bin}/{name}", *options]
    if name == "python":
        program = [os.path.join(HERE, options[0]), *options[1:], f"--checkpoint-dir={folder}/checkpoint"]
    words = [f"{run.bin}/muster", "--standalone", f"--nproc-per-node={workers}", f"--log-dir={folder}/logs", *program, *own]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=4 * PATIENCE_S, start_new_session=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHON_EXEC": run.python, "PYTHONPATH": SDK,
                               "TMPDIR": folder, MARK: run.folder})
    assert done.returncode == 0, f"the undisturbed run failed: {done.stdout}{done.stderr}"
    with open(written(run, f"{folder}/metrics", "metrics-file"), encoding="utf-8") as f:
        return {"digest": parameters(run, f"{folder}/final"), "loss": last_loss([json.loads(line) for line in f])}


def undisturbed(run):
    """{"digest", "loss"} of the same program on one host, with as many workers."""
    scenario = run.scenario
    workers = scenario.nodes[1] * scenario.workers_per_node
    what = [version_of(run), run.filled(scenario.program[1:]), workers, LAST_STEPS]
    key = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:24]
    if known := references.find(run.bin, key):
        return known
    # In the run's own folder and with its mark: should the harness be killed, the next one finds both.
    with tempfile.TemporaryDirectory(prefix="reference-", dir=run.folder) as folder:
        found = train_undisturbed(run, workers, folder)
    references.keep(run.bin, key, found)
    return found


def check(run):
    """A sentence on what was found; AssertionError otherwise."""
    if not run.succeeded():
        return "state: not compared, the job was not to end well"
    written(run, run.metrics_path, "metrics-file")
    calm = undisturbed(run)
    own = parameters(run, f"{run.folder}/final.safetensors")  # it has to be there, and whole, in any case
    if not run.scenario.is_elastic:
        assert own == calm["digest"], f"state: the parameters are {own}, undisturbed {calm['digest']}"
        return f"state: bit-identical to an undisturbed run ({own[:12]})"
    loss = last_loss([event for _, event in proof_samples.of_the_newest_runs(run.metrics())])
    assert None not in (loss, calm["loss"]), f"state: {run.metrics_path} tells of no loss"
    low, high = calm["loss"] * (1 - LOSS_BAND), calm["loss"] * (1 + LOSS_BAND)
    assert low <= loss <= high, f"state: the loss is {loss}, not within {low:.4f} to {high:.4f}"
    return f"state: loss {loss:.4f}, undisturbed {calm['loss']:.4f}"
