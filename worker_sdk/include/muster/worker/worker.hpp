// The way in: a worker joins, gets its group, trains, leaves.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "muster/worker/accelerator.hpp"
#include "muster/worker/environment.hpp"
#include "muster/worker/process_group.hpp"

namespace muster::worker {

/// What buffers on a device travel through.
enum class DeviceBackend : std::uint8_t {
  own,  ///< the accelerator's communicators (NCCL)
  host  ///< Gloo, from copies in the host's memory
};

struct WorkerOptions {
  std::chrono::milliseconds join_timeout{300'000};        ///< reaching the store and forming the group
  std::chrono::milliseconds collective_timeout{600'000};  ///< each collective
  /// With MUSTER_DEBUG=collectives: after so long a rank that keeps the others waiting is named on stderr.
  std::chrono::milliseconds slow_rank_after{10'000};
  /// With it, groups take buffers of Place::device. Must outlive the worker and its groups.
  Accelerator* accelerator = nullptr;
  DeviceBackend device_backend = DeviceBackend::own;
};

/// One for each process. Not thread-safe.
class Worker {
 public:
  /// Reads the environment and says hello to the agent. The store is connected when a group is first asked for.
  /// Throws std::invalid_argument.
  static Worker join(WorkerOptions options = {});

  const Environment& environment() const { return environment_; }
  bool is_rank_zero() const { return environment_.rank == 0; }

  /// The group of all ranks, made at the first call. A world of one needs no network. Throws CollectiveError
  /// that names the store's address or the ranks that did not come.
  ///
  /// With MUSTER_DEBUG=collectives in the environment, this group and all below check before each collective that all
  /// ranks make the same one, and name the ranks and both calls at once where they do not.
  ProcessGroup& process_group();

  /// The group of the ranks on this node, and that of the ranks which have this one's local rank on every node: what is
  /// near and what is far. Made at the first call, which all ranks of the world must make. Throws as process_group()
  /// does, and std::invalid_argument if there are not as many workers on each node.
  ProcessGroup& node_group();
  ProcessGroup& cross_node_group();

  /// The group of these ranks of the world (ascending, this one among them), made at the first call with this `name` by
  /// these ranks alone; a rank's place in the list is its rank in the group. Other ranks may use the same name for a
  /// group of their own. Messages name world ranks. Throws std::invalid_argument for a list that cannot be right, on each
  /// rank in whose list another one has a different list, and for a name that has stood for another list or was refused
  /// for lists that differed; else as process_group() does.
  ProcessGroup& sub_group(const std::string& name, std::span<const int> ranks);

  // Before the set of nodes changes, muster asks the workers to save, waits until they have, and starts the next round
  // from there: no step is lost. Under another launcher nobody asks.
  //
  //   worker.progress(step);
  //   if (worker.drain_requested()) { save(step); return worker.drained(step); }

  /// This step is done: for whoever looks at the job (`musterctl status`). Cheap enough for every step.
  void progress(std::int64_t step);

  /// This rank was asked to save. The others may hear of it a step earlier or later: before acting on it, ranks have to
  /// agree, by drain_requested() or by what they exchange anyway. Costs a system call.
  bool asked_to_save();

  /// A collective call: some rank was asked to save; the same answer on every rank. Costs an all-reduce of one number.
  bool drain_requested();

  /// All up to this step is saved (0: there is nothing to save). The exit code to leave with: 0.
  int drained(std::int64_t step);

  /// The work of this rank is finished. The exit code to leave with: 0. Under `muster --expect-done` an exit with 0 that
  /// was not announced so (or by drained()) counts as a failure: some library left in the middle.
  int done();

  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;
  ~Worker();

 private:
  struct Impl;
  explicit Worker(Environment environment, WorkerOptions options);
  Environment environment_;
  std::unique_ptr<Impl> impl_;
};

/// Runs a worker's main: an exception that escapes, of any type, is printed as one line on stderr ("rank 1: what: why"),
/// written to TORCHELASTIC_ERROR_FILE in torchrun's format, and gives exit code 1. A std::invalid_argument (a wrong
/// option, bad data) gives 2, a PermanentError 1, and both say in the file that trying again cannot help: muster then
/// restarts nothing.
int run_main(int (*body)(int, char**), int argc, char** argv);

}  // namespace muster::worker
