"""The README's worker trains with two ranks that share no disk, goes on from what rank 0 has saved, and leaves what its
last line says it saves and nothing else: readme_worker_test.py BIN."""

import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile


def weights_of(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        start, end = header["weights"]["data_offsets"]
        base = f.tell()
        f.seek(base + start)
        return struct.unpack(f"<{(end - start) // 4}f", f.read(end - start))


def train(programs, folder):
    in_its_own_folder = 'mkdir -p rank-$RANK && cd rank-$RANK && exec "$0"'
    run = subprocess.run(
        [f"{programs}/muster", "--standalone", "--nproc-per-node=2", f"--log-dir={folder}/logs", "sh", "-c", in_its_own_folder,
         f"{programs}/readme_worker"],
        cwd=folder, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.returncode == 0, run.stdout
    # And one that had nothing left to do, and so saved nothing, may have noted that it was there.
    left = sorted(name for name in os.listdir(f"{folder}/rank-0/ckpt") if not name.startswith(".tmp-begun-run-"))
    assert len(left) == 3 and all(name.startswith("step-") for name in left), f"{left}\n{run.stdout}"
    assert not os.path.exists(f"{folder}/rank-1/ckpt"), "rank 0 alone has to do with checkpoints"
    # Each rank pulls towards its own number: the average of ranks 0 and 1.
    (saved,) = glob.glob(f"{folder}/rank-0/ckpt/step-*1000-generation-*/*.safetensors")
    wrong = [weight for weight in weights_of(saved) if abs(weight - 0.5) > 1e-4]
    assert not wrong, wrong[:5]
    return left


def main(programs):
    with tempfile.TemporaryDirectory() as folder:
        last = train(programs, folder)[-1]
        assert train(programs, folder)[-1] == last, "there was nothing left to do"
        shutil.rmtree(f"{folder}/rank-0/ckpt/{last}")
        assert train(programs, folder)[-1] != last, "the last hundred steps were to be made again"


main(sys.argv[1])
