# Shared by the scripts of this folder: sourced, never run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One clear sentence, then the end.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

say() { printf '%s: %s\n' "$(basename "$0")" "$*"; }

# Compilers need about 1 GB each: as many jobs as there are usable CPUs, but no more than memory allows.
build_jobs() {
  local cpus memory_gb
  cpus=$(nproc)
  memory_gb=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  [ "$memory_gb" -ge 1 ] || memory_gb=1
  echo $((cpus < memory_gb ? cpus : memory_gb))
}
