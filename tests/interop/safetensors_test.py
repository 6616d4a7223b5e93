"""A sharded checkpoint, made one file, is what Python's safetensors and PyTorch read: safetensors_test.py BIN_DIR PYTHON.

PYTHON has PyTorch and safetensors (scripts/setup-torch). Two ranks train fsdp_mlp for some steps. The one file must hold,
under the names that a torch.nn.Module gives them, what the ranks' parts hold row by row, and what the trainer exported.
"""

import glob
import os
import subprocess
import sys
import tempfile

READER = """
import glob, sys, torch
from safetensors import safe_open
from safetensors.torch import load_file

folder, whole, model, exported = sys.argv[1:]
parts = [load_file(path) for path in sorted(glob.glob(f"{folder}/part-*.safetensors"))]
together = load_file(whole)
assert set(together) == {name for part in parts for name in part}, set(together)
for name, tensor in together.items():
    rows = [part[name] for part in parts if name in part]
    assert torch.equal(tensor, torch.cat(rows) if tensor.dim() else rows[0]), name

layers = torch.nn.Sequential()
for number, (wide, out) in enumerate([(784, 24), (24, 24), (24, 10)]):
    layers.add_module(str(2 * number), torch.nn.Linear(wide, out))
parameters = load_file(model)
layers.load_state_dict(parameters)
assert all(torch.equal(tensor, parameters[name]) for name, tensor in load_file(exported).items())
assert all(tensor.dtype == torch.float32 and tensor.isfinite().all() for tensor in parameters.values())
with safe_open(model, "pt") as file:
    assert file.metadata() == {"format": "pt"}, file.metadata()
print(f"{len(together)} tensors from {len(parts)} parts; {len(parameters)} parameters", *sorted(parameters))
"""


def main(programs, python):
    if subprocess.run([python, "-c", "import safetensors"], stderr=subprocess.DEVNULL).returncode != 0:
        sys.exit(f"{python} has no safetensors: run scripts/setup-torch with its folder once more")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{programs}/muster", "--standalone", "--nproc-per-node=2", f"--log-dir={folder}/logs",
                        f"{programs}/fsdp_mlp", "--hidden-dim=24", "--layers=3", "--max-steps=20",
                        f"--checkpoint-dir={folder}/ckpt", f"--export={folder}/exported.safetensors"],
                       check=True, timeout=120, stdout=subprocess.DEVNULL)
        (newest,) = glob.glob(f"{folder}/ckpt/step-*20-generation-*")
        assert len(glob.glob(f"{newest}/part-*")) == 2, os.listdir(newest)
        for name, options in (("whole", []), ("model", ["--prefix=model."])):
            subprocess.run([f"{programs}/muster_checkpoint", "consolidate", f"{folder}/ckpt",
                            f"{folder}/{name}.safetensors", *options], check=True, timeout=60, stdout=subprocess.DEVNULL)
        subprocess.run([python, "-c", READER, newest, *(f"{folder}/{name}.safetensors"
                                                        for name in ("whole", "model", "exported"))],
                       check=True, timeout=120)


main(*sys.argv[1:])
