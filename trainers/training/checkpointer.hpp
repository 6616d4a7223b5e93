// A run's checkpoints: its parameters, its optimizer's state, and where it stands.
//
// Where every rank holds everything (data parallelism), rank 0 writes and reads them, and what it read goes to the
// others by broadcast, so that they need not see its disk. Where the state is split, each rank writes and reads its own
// rows, and all must see the folder. Either kind loads what the other saved.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "muster/worker/process_group.hpp"
#include "muster/worker/sharded_checkpoint.hpp"
#include "trainers/optim/optimizer.hpp"
#include "trainers/parallel/shard.hpp"
#include "trainers/training/report.hpp"
#include "trainers/training/state.hpp"

namespace muster::trainers {

struct CheckpointerOptions {
  std::filesystem::path folder;  ///< empty: nothing is saved or loaded
  int keep_last = 3;
  bool in_background = true;  ///< training goes on while a copy is written
};

class Checkpointer {
 public:
  /// A collective call. All references, and what the shards point to, must outlive it.
  Checkpointer(CheckpointerOptions options, RunIdentity identity, const StateShards& shards,
               Optimizer& optimizer, worker::ProcessGroup& group, Report& report);

  /// A collective call. Fills parameters, optimizer and state on every rank from the newest whole checkpoint;
  /// leaves them alone where there is none. Throws std::invalid_argument that names the reason, on every rank, if there
  /// are some and none is usable, or if it belongs to another run.
  void resume(TrainingState& state);

  /// A collective call, as are the next two. Saves, or starts to, once the save before is done. A failure (disk full)
  /// is reported, and training goes on; but each of the three throws worker::SupersededError, on every rank, if another
  /// run has gone on from these checkpoints.
  void save(const TrainingState& state);
  /// After each step: takes note of a save that has become done.
  void step_done();
  /// Waits for the save under way.
  void finish();

  bool enabled() const { return checkpoint_.has_value(); }
  /// Of this run, and of the one that saved what it was resumed from; known after resume().
  worker::Lineage lineage() const { return checkpoint_ ? checkpoint_->lineage() : worker::Lineage(); }
  worker::Lineage loaded_lineage() const { return loaded_; }
  /// Of the newest checkpoint that this run has saved or was resumed from; -1: none.
  std::int64_t saved_step() const { return saved_step_; }

 private:
  bool agree_on_replication() const;
  std::vector<worker::TensorSlice> slices();
  void mirror_state();
  void load_mirrors();
  void conclude(const std::optional<worker::SaveOutcome>& outcome);

  CheckpointerOptions options_;
  RunIdentity identity_;
  std::vector<TensorShard> shards_;  ///< named as in the checkpoint
  /// In the order of the shards, in the host's memory: what is saved and loaded of tensors that lie on a device.
  std::vector<Tensor> mirrors_;
  Optimizer& optimizer_;
  worker::ProcessGroup& group_;
  Report& report_;
  bool replicated_ = true;
  std::int64_t saved_step_ = -1;
  worker::Lineage loaded_;
  std::optional<worker::ShardedCheckpoint> checkpoint_;
};

}  // namespace muster::trainers
