// Was it the kernel's out-of-memory killer? A worker that it ends sees SIGKILL and can say nothing, but the
// worker's cgroup counts such kills.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace muster::agent {

/// What is known about a cgroup's memory at one moment.
struct MemoryCounters {
  std::uint64_t oom_kills = 0;
  std::optional<std::uint64_t> peak_bytes;
  std::optional<std::uint64_t> limit_bytes;  ///< none: no limit
  bool of_whole_machine = false;             ///< no cgroup could be read: these are the machine's
};

// ---- pure ----

/// The "oom_kill N" line of memory.events (v2), memory.oom_control (v1) or /proc/vmstat.
std::optional<std::uint64_t> parse_oom_kills(const std::string& text);

/// The memory cgroup in the text of /proc/PID/cgroup, as a path below the mount point: "/a/b" (v2) or
/// "/memory/a/b" (v1).
struct MemoryCgroup {
  std::string path;
  bool v1 = false;
};
std::optional<MemoryCgroup> parse_memory_cgroup(const std::string& proc_cgroup);

/// "its cgroup counted 1 OOM kill (peak 15.8 of 16.0 GiB)", "its cgroup counted no OOM kill".
std::string oom_sentence(const MemoryCounters& before, const MemoryCounters& after);

/// True for an oom_sentence() that found one.
bool tells_of_oom_kill(const std::string& evidence);

// ---- reads files ----

/// Compares the counters of this process's cgroup, which its children share, with those at its making.
class OomEvidence {
 public:
  /// The folders are given by tests only.
  explicit OomEvidence(std::filesystem::path cgroup_root = "/sys/fs/cgroup",
                       std::filesystem::path proc = "/proc");

  /// For the worker that was just killed by SIGKILL; empty where nothing can be read. A kill is told of once.
  std::string since_last_time();

 private:
  std::optional<MemoryCounters> read() const;

  std::filesystem::path cgroup_root_;
  std::filesystem::path proc_;
  std::optional<MemoryCounters> before_;
};

}  // namespace muster::agent
