// The way in: a worker joins, gets its group, trains, leaves.
#pragma once

#include <chrono>
#include <memory>

#include "muster/worker/environment.hpp"
#include "muster/worker/process_group.hpp"

namespace muster::worker {

struct WorkerOptions {
  std::chrono::milliseconds join_timeout{300'000};        ///< reaching the store and forming the group
  std::chrono::milliseconds collective_timeout{600'000};  ///< each collective
};

/// One for each process. Not thread-safe.
class Worker {
 public:
  /// Reads the environment. The store is connected when a group is first asked for. Throws
  /// std::invalid_argument.
  static Worker join(WorkerOptions options = {});

  const Environment& environment() const { return environment_; }
  bool is_rank_zero() const { return environment_.rank == 0; }

  /// The group of all ranks, made at the first call. A world of one needs no network. Throws CollectiveError
  /// that names the store's address or the ranks that did not come.
  ProcessGroup& process_group();

  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;
  ~Worker();

 private:
  struct Impl;
  explicit Worker(Environment environment, WorkerOptions options);
  Environment environment_;
  std::unique_ptr<Impl> impl_;
};

/// Runs a worker's main: an exception that escapes is printed as one line on stderr ("rank 1: what: why"),
/// written to TORCHELASTIC_ERROR_FILE in torchrun's format, and gives exit code 1. A std::invalid_argument (a wrong
/// option, bad data) gives 2 and says in the file that trying again cannot help: muster then restarts nothing.
int run_main(int (*body)(int, char**), int argc, char** argv);

}  // namespace muster::worker
