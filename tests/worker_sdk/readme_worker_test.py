"""The README's worker trains with two ranks and leaves what its last line says it saves: readme_worker_test.py BIN."""

import glob
import json
import os
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


def main(programs):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [f"{programs}/muster", "--standalone", "--nproc-per-node=2", f"--log-dir={folder}/logs", f"{programs}/readme_worker"],
            cwd=folder, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert run.returncode == 0, run.stdout
        saved = glob.glob(f"{folder}/ckpt/step-*1000/*.safetensors")
        assert saved, f"no checkpoint of step 1000 in {os.listdir(folder + '/ckpt')}\n{run.stdout}"
        # Each rank pulls towards its own number: the average of ranks 0 and 1.
        wrong = [weight for weight in weights_of(saved[0]) if abs(weight - 0.5) > 1e-4]
        assert not wrong, wrong[:5]


main(sys.argv[1])
