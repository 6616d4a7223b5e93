// The worker that the launch benchmark starts: notes when its main began and how large its parent is, and
// leaves.
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

long long monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// VmHWM of the parent in KiB, 0 if it cannot be read.
long parent_peak_kib() {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/status", getppid());
  FILE* status = std::fopen(path, "re");
  if (!status) return 0;
  char line[256];
  long kib = 0;
  while (std::fgets(line, sizeof line, status))
    if (std::strncmp(line, "VmHWM:", 6) == 0) kib = std::strtol(line + 6, nullptr, 10);
  std::fclose(status);
  return kib;
}

}  // namespace

int main() {
  const long long began_ns = monotonic_ns();
  const char* folder = std::getenv("STAMP_DIR");
  const char* rank = std::getenv("RANK");
  if (!folder || !rank) {
    std::fputs("stamp_child: STAMP_DIR and RANK must be set\n", stderr);
    return 2;
  }
  char path[4096];
  std::snprintf(path, sizeof path, "%s/%s", folder, rank);
  FILE* stamp = std::fopen(path, "we");
  if (!stamp) return 1;
  std::fprintf(stamp, "%lld %ld\n", began_ns, parent_peak_kib());
  return std::fclose(stamp) == 0 ? 0 : 1;
}
