// The training loop: epochs of steps, a checkpoint every so many steps, an evaluation after each epoch.
//
// Everything that a step depends on is in the parameters, the optimizer's state and the TrainingState, and
// all sums have a fixed order. So a run that is killed anywhere and resumed from a checkpoint by a world of
// the same size ends with the same bits as one that was not.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

#include "muster/worker/process_group.hpp"
#include "trainers/data/dataset.hpp"
#include "trainers/data/sampler.hpp"
#include "trainers/optim/optimizer.hpp"
#include "trainers/parallel/parallelism.hpp"
#include "trainers/tensor/module.hpp"
#include "trainers/training/checkpointer.hpp"
#include "trainers/training/report.hpp"

namespace muster::trainers {

struct FitOptions {
  std::int64_t epochs = 5;
  std::int64_t batch_size = 64;  ///< of each worker
  std::uint64_t seed = 0;
  std::int64_t checkpoint_every_steps = 200;
  std::int64_t max_steps = 0;  ///< of the whole run, resumed steps included; 0: no limit
};

/// The run's tie to whoever supervises it; by default there is nobody.
struct Supervision {
  std::function<void(std::int64_t step)> progress = [](std::int64_t) {};
  std::function<bool()> asked_to_save = [] { return false; };  ///< ranks may hear of it at different steps
};

struct FitParts {
  Module& model;
  Parallelism& parallelism;  ///< of this model
  Optimizer& optimizer;
  worker::ProcessGroup& group;
  const ImageDataset& train;
  const ImageDataset& test;
  Checkpointer& checkpointer;
  Report& report;
  Supervision supervision = {};
};

class Fit {
 public:
  /// A collective call: resumes. All parts must outlive it.
  Fit(FitParts parts, FitOptions options);

  /// A collective call: trains to the end, or to the step after which all ranks know that one of them was asked to
  /// save; all stop after the same step then, and it is saved (if there are checkpoints).
  void run();

  /// It stopped because it was asked to save.
  bool drained() const { return drained_; }
  /// The newest step that a checkpoint holds; 0: none.
  std::int64_t saved_step() const { return std::max<std::int64_t>(saved_step_, 0); }

  const TrainingState& state() const { return state_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool at_step_limit() const { return options_.max_steps > 0 && state_.step >= options_.max_steps; }
  void train_stretch();
  void train_step(std::span<const std::uint32_t> indices);
  void gather_loss();
  void save();
  void finish_stretch(double seconds);

  FitParts parts_;
  FitOptions options_;
  TrainingState state_;
  DistributedSampler sampler_;
  Batch batch_;
  Tensor logits_gradient_;
  double own_loss_sum_ = 0;  ///< since the last gather_loss, on this rank
  std::int64_t own_loss_samples_ = 0;
  std::int64_t stretch_samples_ = 0;  ///< this rank's
  std::int64_t saved_step_ = -1;
  bool drained_ = false;
};

}  // namespace muster::trainers
