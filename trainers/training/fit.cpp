#include "trainers/training/fit.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "muster/worker/permanent_error.hpp"
#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/on_device.hpp"
#include "trainers/training/finite.hpp"

namespace muster::trainers {
namespace {

constexpr const char* kAllow = "--allow-nan goes on all the same";

/// Resumed, and with the global batch that it goes on with.
TrainingState first_state(const FitParts& parts, const FitOptions& options) {
  TrainingState state;
  parts.checkpointer.resume(state);
  const auto here = options.batch_size * parts.group.size();
  if (options.keep == Keep::worker_batch || state.global_batch == 0) state.global_batch = here;
  return state;
}

/// One more than the greatest that any rank knows.
std::int64_t next_attempt(worker::ProcessGroup& group, const std::filesystem::path& folder) {
  std::vector<std::int64_t> known(static_cast<std::size_t>(group.size()), 0);
  known[static_cast<std::size_t>(group.rank())] = newest_audited_attempt(folder);
  group.all_reduce(worker::buffer_of(std::span(known)), worker::ReduceOp::sum)->wait();
  return *std::max_element(known.begin(), known.end()) + 1;
}

AuditRun run_of(const worker::Lineage& lineage) { return {lineage.generation, lineage.round}; }

void scale(Tensor& tensor, double factor) {
  tensor.device().scale(tensor.data(), static_cast<float>(factor), tensor.count());
}

}  // namespace

Fit::Fit(FitParts parts, FitOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      state_(first_state(parts_, options_)),
      loader_(parts_.train,
              {.count = parts_.train.size(),
               .world_size = parts_.group.size(),
               .rank = parts_.group.rank(),
               .seed = options_.seed,
               .order = options_.order,
               .tail = options_.keep == Keep::global_batch ? Tail::uneven : options_.tail},
              {.global_batch = state_.global_batch,
               .piece_size = options_.batch_size,
               .prefetch = options_.prefetch}) {
  if (state_.step > 0) last_save_ = state_.step;
  if (!options_.audit_folder.empty()) start_audit();
}

void Fit::start_audit() {
  audit_.emplace(options_.audit_folder,
                 AuditHeader{.attempt = next_attempt(parts_.group, options_.audit_folder),
                             .rank = parts_.group.rank(),
                             .world_size = parts_.group.size(),
                             .resumed_at = state_.step,
                             .run = run_of(parts_.checkpointer.lineage()),
                             .from = run_of(parts_.checkpointer.loaded_lineage()),
                             .samples = parts_.train.size(),
                             .tail = options_.keep == Keep::global_batch ? Tail::uneven : options_.tail});
}

void Fit::run() {
  while (state_.epoch < options_.epochs && !at_step_limit()) {
    const auto start = Clock::now();
    train_stretch();
    if (drained_) break;
    finish_stretch(std::chrono::duration<double>(Clock::now() - start).count());
  }
  if (parts_.checkpointer.enabled() && last_save_ != state_.step) save();
  parts_.checkpointer.finish();
  if (drained_) check_metrics();
  if (drained_) parts_.report.drained(state_, saved_step() == state_.step);
}

/// Where nothing is saved all would be lost: training goes on then, and fails once its result is written.
bool Fit::metrics_end_it() const {
  return parts_.report.metrics_error() != 0 && parts_.checkpointer.enabled();
}

/// Was it that why all stopped? A collective call, and every rank fails by the same words: if rank 0 did alone, another
/// that lost it could be the first to end, and be started again.
void Fit::check_metrics() {
  std::array<std::int64_t, 1> error{parts_.report.metrics_error()};
  parts_.group.all_reduce(worker::buffer_of(std::span<std::int64_t>(error)), worker::ReduceOp::max)->wait();
  if (error[0] == 0 || !parts_.checkpointer.enabled()) return;
  const auto what_is_left =
      saved_step() == state_.step
          ? std::string(
                "nothing is lost: it is saved, and once there is room the same command goes on from it")
          : fmt::format("it could not be saved, the newest checkpoint is of step {}", saved_step());
  throw worker::PermanentError(fmt::format("{}; training stopped after step {}, {}",
                                           parts_.report.metrics_failure(static_cast<int>(error[0])),
                                           state_.step, what_is_left));
}

void Fit::train_stretch() {
  stretch_samples_ = 0;
  epoch_is_over_ = false;
  loader_.start(state_.epoch, state_.position);
  while (!epoch_is_over_ && !at_step_limit() && !drained_) {
    auto* step = loader_.next();
    epoch_is_over_ = !step || step->ends_epoch;
    if (!step) break;
    train_step(*step);
    state_.position = step->position;
    parts_.checkpointer.step_done();
    if (parts_.checkpointer.enabled() && state_.step % options_.checkpoint_every_steps == 0) save();
  }
}

void Fit::train_step(StepBatch& step) {
  // Before anything of it can count: a line too many is void, one too few would be missed.
  if (audit_) audit_->record(state_.step + 1, state_.epoch, step);
  set_learning_rate();
  parts_.parallelism.raise_flag(parts_.supervision.asked_to_save() || metrics_end_it());
  double loss_sum = 0;
  for (auto& piece : step.pieces) {
    if (&piece == &step.pieces.back()) {
      loss_sum += train_piece(piece);
    } else {
      parts_.parallelism.no_sync([&] { loss_sum += train_piece(piece); });
    }
  }
  parts_.parallelism.finish_gradients();
  if (options_.clip_norm > 0) parts_.parallelism.clip_gradients(options_.clip_norm);
  parts_.optimizer.step();

  ++state_.step;
  const auto samples = static_cast<std::int64_t>(step.indices.size());
  stretch_samples_ += step.world_samples;
  own_loss_samples_ += samples;
  own_loss_sum_ += loss_sum;
  parts_.report.step(state_, samples > 0 ? loss_sum / static_cast<double>(samples) : 0);
  parts_.supervision.progress(state_.step);
  drained_ = parts_.parallelism.flag_was_raised();
}

/// One forward and backward pass; returns the sum of its samples' losses.
double Fit::train_piece(StepBatch::Piece& piece) {
  auto& images = on_device(parts_.device, piece.batch.images, images_);
  const auto& logits = parts_.model.forward(images);
  const double loss = softmax_cross_entropy(logits, piece.batch.labels, logits_gradient_);
  check_loss(loss, images, logits);
  if (piece.weight != 1) scale(logits_gradient_, piece.weight);
  parts_.model.backward(logits_gradient_, InputGradient::unwanted);
  return loss * static_cast<double>(piece.batch.labels.size());
}

void Fit::set_learning_rate() {
  if (!options_.schedule) return;
  const auto done = state_.epoch * parts_.train.size() + state_.position;
  auto total = options_.epochs * parts_.train.size();
  if (options_.max_steps > 0)
    total = std::min(total, done + (options_.max_steps - state_.step) * state_.global_batch);
  parts_.optimizer.learning_rate =
      learning_rate_of(*options_.schedule,
                       {.samples_done = done, .samples_total = total, .global_batch = state_.global_batch});
}

void Fit::check_loss(double loss, const Tensor& batch, const Tensor& logits) const {
  if (std::isfinite(loss) || options_.not_finite == NotFinite::is_allowed) return;
  throw worker::PermanentError(fmt::format(
      "step {}: the loss of rank {} is {}: {}; {}", state_.step + 1, parts_.group.rank(),
      text_of_number(loss), first_not_finite(batch, parts_.optimizer.parameters(), logits), kAllow));
}

/// A checkpoint with a NaN in it would be where every later attempt starts.
void Fit::check_parameters() const {
  if (options_.not_finite == NotFinite::is_allowed) return;
  for (const auto* parameter : parts_.optimizer.parameters()) {
    if (all_finite(parameter->value)) continue;
    throw worker::PermanentError(
        fmt::format("step {}: not saved, on rank {} {}; {}", state_.step, parts_.group.rank(),
                    first_not_finite({}, parts_.optimizer.parameters(), {}), kAllow));
  }
}

/// Adds what all ranks saw since the last call to the state, the same on every rank.
void Fit::gather_loss() {
  std::array<double, 2> sums{own_loss_sum_, static_cast<double>(own_loss_samples_)};
  parts_.group.all_reduce(worker::buffer_of(std::span<double>(sums)), worker::ReduceOp::sum)->wait();
  state_.loss_sum += sums[0];
  state_.loss_samples += static_cast<std::int64_t>(sums[1]);
  own_loss_sum_ = 0;
  own_loss_samples_ = 0;
}

void Fit::save() {
  check_parameters();
  gather_loss();
  parts_.checkpointer.save(state_);
  last_save_ = state_.step;
}

void Fit::finish_stretch(double seconds) {
  gather_loss();
  StretchReport report{.epoch = state_.epoch + 1, .epochs = options_.epochs};
  report.complete = epoch_is_over_;
  if (state_.loss_samples > 0) report.loss = state_.loss_sum / static_cast<double>(state_.loss_samples);
  report.samples_per_s = static_cast<double>(stretch_samples_) / seconds;
  report.learning_rate = parts_.optimizer.learning_rate;
  report.accuracy = evaluate(parts_.model, parts_.test, parts_.group, parts_.device);
  parts_.report.stretch(report, state_);
  if (report.complete) {
    state_ = {.step = state_.step, .epoch = state_.epoch + 1, .global_batch = state_.global_batch};
  }
}

}  // namespace muster::trainers
