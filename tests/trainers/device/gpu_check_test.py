"""scripts/gpu-check on a machine without a GPU, real or made to look like one; and what it does to the trainers, with an
emulated GPU.

usage: gpu_check_test.py no_gpu SOURCE_DIR | trainers SOURCE_DIR BIN_DIR
"""

import os
import shutil
import subprocess
import sys
import tempfile


def check(source_dir, path, expected):
    environment = dict(os.environ, PATH=path)
    done = subprocess.run([os.path.join(source_dir, "scripts/gpu-check")], env=environment, capture_output=True, text=True)
    if done.returncode != 77 or expected not in done.stdout:
        sys.exit(f"exit code {done.returncode}, expected 77 and '{expected}':\n{done.stdout}{done.stderr}")


def trainers(source_dir, bin_dir):
    """The module is looked for beside the program: so both are copied."""
    with tempfile.TemporaryDirectory() as folder:
        for program in ("ddp_mnist", "fsdp_mlp"):
            shutil.copy(os.path.join(bin_dir, program), folder)
        shutil.copy(os.path.join(bin_dir, "libtest_emulated_cuda.so"), os.path.join(folder, "libmuster_cuda.so"))
        script = os.path.join(source_dir, "tests/bench/gpu_training.py")
        subprocess.run([sys.executable, script, folder, "1", "12"], check=True)


def no_gpu(source_dir):
    with tempfile.TemporaryDirectory() as folder:
        for tool in ("bash", "env", "dirname", "basename", "grep", "sed"):
            found = next(p for p in (os.path.join(d, tool) for d in ("/usr/bin", "/bin")) if os.path.exists(p))
            os.symlink(found, os.path.join(folder, tool))
        check(source_dir, folder, "there is no GPU here (no nvidia-smi): nothing was checked")
        silent = os.path.join(folder, "nvidia-smi")
        with open(silent, "w", encoding="utf-8") as script:
            script.write("#!/bin/bash\necho 'No devices were found'\nexit 6\n")
        os.chmod(silent, 0o755)
        check(source_dir, folder, "nvidia-smi lists no GPU: nothing was checked")


if __name__ == "__main__":
    {"no_gpu": no_gpu, "trainers": trainers}[sys.argv[1]](*sys.argv[2:])
