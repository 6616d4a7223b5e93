// The training loop: epochs of steps, a checkpoint every so many steps, an evaluation after each epoch.
//
// Everything that a step depends on is in the parameters, the optimizer's state and the TrainingState, and
// all sums have a fixed order. So a run that is killed anywhere and resumed from a checkpoint by a world of
// the same size ends with the same bits as one that was not.
//
// A world of another size goes on as well: either each worker's batch stays as it is, and the learning rate follows the
// new global batch (optim/schedule.hpp); or the global batch stays, whatever that is for each worker, and the training
// is the same but for rounding.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "muster/worker/process_group.hpp"
#include "trainers/data/audit.hpp"
#include "trainers/data/loader.hpp"
#include "trainers/optim/optimizer.hpp"
#include "trainers/optim/schedule.hpp"
#include "trainers/parallel/parallelism.hpp"
#include "trainers/tensor/module.hpp"
#include "trainers/training/checkpointer.hpp"
#include "trainers/training/report.hpp"

namespace muster::trainers {

/// What stays when the world's size changes.
enum class Keep : std::uint8_t {
  worker_batch,
  /// Of the run's first world. What a worker gets beyond `batch_size` it computes in several passes, and adds up.
  global_batch
};

enum class NotFinite : std::uint8_t { stops, is_allowed };

struct FitOptions {
  std::int64_t epochs = 5;
  std::int64_t batch_size = 64;  ///< of each worker
  std::uint64_t seed = 0;
  std::int64_t checkpoint_every_steps = 200;
  double clip_norm = 0;        ///< gradients are shortened to it; 0: never
  std::int64_t max_steps = 0;  ///< of the whole run, resumed steps included; 0: no limit
  Order order = Order::shuffled;
  Tail tail = Tail::pad;  ///< with Keep::global_batch nothing is repeated or left out
  Keep keep = Keep::worker_batch;
  std::optional<ScheduleOptions> schedule = {};  ///< nothing: the optimizer keeps its rate
  NotFinite not_finite = NotFinite::stops;
  int prefetch = 0;                         ///< steps whose batches are made ready in advance
  std::filesystem::path audit_folder = {};  ///< empty: no record of the samples that were used
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
  const Dataset& train;
  const Dataset& test;
  Checkpointer& checkpointer;
  Report& report;
  Supervision supervision = {};
  Device& device = cpu_device();  ///< where the model's parameters lie
};

class Fit {
 public:
  /// A collective call: resumes. All parts must outlive it.
  Fit(FitParts parts, FitOptions options);

  /// A collective call: trains to the end, or to the step after which all ranks know that one of them was asked to
  /// save; all stop after the same step then, and it is saved (if there are checkpoints). Throws PermanentError, which
  /// names step, rank and tensor, when the loss or what is to be saved is not finite; and, on every rank and with a
  /// checkpoint of the last step, when rank 0's metrics file takes no more (where nothing is saved training goes on).
  void run();

  /// It stopped because it was asked to save.
  bool drained() const { return drained_; }
  /// The newest step that a checkpoint holds; 0: none.
  std::int64_t saved_step() const { return std::max<std::int64_t>(parts_.checkpointer.saved_step(), 0); }

  const TrainingState& state() const { return state_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool at_step_limit() const { return options_.max_steps > 0 && state_.step >= options_.max_steps; }
  void start_audit();
  void train_stretch();
  void train_step(StepBatch& step);
  double train_piece(StepBatch::Piece& piece);
  void set_learning_rate();
  bool metrics_end_it() const;
  void check_metrics();
  void check_loss(double loss, const Tensor& batch, const Tensor& logits) const;
  void check_parameters() const;
  void gather_loss();
  void save();
  void finish_stretch(double seconds);

  FitParts parts_;
  FitOptions options_;
  TrainingState state_;
  Loader loader_;
  std::optional<AuditLog> audit_;
  Tensor images_;  ///< a batch, where it has to be brought to a device
  Tensor logits_gradient_;
  double own_loss_sum_ = 0;  ///< since the last gather_loss, on this rank
  std::int64_t own_loss_samples_ = 0;
  std::int64_t stretch_samples_ = 0;  ///< of all ranks
  std::int64_t last_save_ = -1;       ///< step of the newest checkpoint that was begun or resumed from
  bool epoch_is_over_ = false;
  bool drained_ = false;
};

}  // namespace muster::trainers
