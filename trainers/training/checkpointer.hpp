// A run's checkpoints: its parameters, its optimizer's state, and where it stands. Rank 0 writes and reads
// them; what it read goes to the others by broadcast, so that they need not see its disk.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "muster/worker/checkpoint.hpp"
#include "muster/worker/process_group.hpp"
#include "trainers/optim/optimizer.hpp"
#include "trainers/training/report.hpp"
#include "trainers/training/state.hpp"

namespace muster::trainers {

struct CheckpointerOptions {
  std::filesystem::path folder;  ///< empty: nothing is saved or loaded
  int keep_last = 3;
};

class Checkpointer {
 public:
  /// All references must outlive it.
  Checkpointer(CheckpointerOptions options, RunIdentity identity, std::vector<Parameter*> parameters,
               Optimizer& optimizer, worker::ProcessGroup& group, Report& report);

  /// A collective call. Fills parameters, optimizer and state on every rank from the newest whole checkpoint;
  /// leaves them alone where there is none. Throws std::invalid_argument that names the reason, on every rank, if there
  /// are some and none is usable, or if it belongs to another run.
  void resume(TrainingState& state);

  /// Rank 0 writes; the others return at once. A failure (disk full) is reported, and training goes on.
  void save(const TrainingState& state);

  bool enabled() const { return store_.has_value(); }

 private:
  std::optional<worker::LoadedCheckpoint> load(TrainingState& state);
  void share(TrainingState& state);
  std::vector<worker::TensorRef> tensors();

  RunIdentity identity_;
  std::vector<Parameter*> parameters_;
  Optimizer& optimizer_;
  worker::ProcessGroup& group_;
  Report& report_;
  std::optional<worker::CheckpointStore> store_;
};

}  // namespace muster::trainers
