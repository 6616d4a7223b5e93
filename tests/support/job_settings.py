"""What a user has set in the shell for jobs of the user's own: a job that is tried has to begin without it."""

import os

# Of launchers and daemons, of schedulers, of PyTorch, of the libraries that connect workers or thread them.
PREFIXES = ("PET_", "MUSTER_", "SLURM_", "TORCH", "PYTORCH_", "NCCL_", "GLOO_", "TP_SOCKET_", "OMP_", "MKL_", "OPENBLAS_")
# What a launcher gives to each worker.
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
         "ROLE_WORLD_SIZE", "ROLE_NAME", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
# The tests' own; and the mark by which a job around them finds what it has left.
KEPT = ("MUSTER_FAULT_PATIENCE_S", "MUSTER_FULL_TESTS", "MUSTER_LAB_", "MUSTER_SANITIZER", "MUSTER_TORCH_PYTHON",
        "MUSTER_AGENT")


def is_setting(name):
    return (name in NAMES or name.startswith(PREFIXES)) and not name.startswith(KEPT)


def forget_settings():
    """In the environment of this process, and so of all that it starts."""
    for name in filter(is_setting, list(os.environ)):
        del os.environ[name]
