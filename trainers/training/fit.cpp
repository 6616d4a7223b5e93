#include "trainers/training/fit.hpp"

#include <array>

#include "trainers/tensor/cross_entropy.hpp"

namespace muster::trainers {
namespace {

TrainingState resumed_state(Checkpointer& checkpointer) {
  TrainingState state;
  checkpointer.resume(state);
  return state;
}

}  // namespace

Fit::Fit(FitParts parts, FitOptions options)
    : parts_(parts),
      options_(options),
      state_(resumed_state(parts.checkpointer)),
      sampler_({.count = parts.train.size(),
                .world_size = parts.group.size(),
                .rank = parts.group.rank(),
                .seed = options.seed}) {
  if (state_.step > 0) saved_step_ = state_.step;
}

void Fit::run() {
  while (state_.epoch < options_.epochs && !at_step_limit()) {
    const auto start = Clock::now();
    train_stretch();
    if (drained_) break;
    finish_stretch(std::chrono::duration<double>(Clock::now() - start).count());
  }
  if (parts_.checkpointer.enabled() && saved_step_ != state_.step) save();
  if (drained_) parts_.report.drained(state_, saved_step() == state_.step);
}

void Fit::train_stretch() {
  stretch_samples_ = 0;
  sampler_.start(state_.epoch, state_.position);
  while (!sampler_.epoch_is_over() && !at_step_limit() && !drained_) {
    train_step(sampler_.next(options_.batch_size));
    state_.position = sampler_.position();
    if (parts_.checkpointer.enabled() && state_.step % options_.checkpoint_every_steps == 0) save();
  }
}

void Fit::train_step(std::span<const std::uint32_t> indices) {
  parts_.train.gather(indices, batch_);
  const auto& logits = parts_.model.forward(batch_.images);
  const double loss = softmax_cross_entropy(logits, batch_.labels, logits_gradient_);
  parts_.parallelism.raise_flag(parts_.supervision.asked_to_save());
  parts_.model.backward(logits_gradient_, InputGradient::unwanted);
  parts_.parallelism.finish_gradients();
  parts_.optimizer.step();

  ++state_.step;
  const auto samples = static_cast<std::int64_t>(indices.size());
  stretch_samples_ += samples;
  own_loss_samples_ += samples;
  own_loss_sum_ += loss * static_cast<double>(samples);
  parts_.report.step(state_, loss);
  parts_.supervision.progress(state_.step);
  drained_ = parts_.parallelism.flag_was_raised();
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
  gather_loss();
  parts_.checkpointer.save(state_);
  saved_step_ = state_.step;
}

void Fit::finish_stretch(double seconds) {
  gather_loss();
  StretchReport report{.epoch = state_.epoch + 1, .epochs = options_.epochs};
  report.complete = sampler_.epoch_is_over();
  if (state_.loss_samples > 0) report.loss = state_.loss_sum / static_cast<double>(state_.loss_samples);
  report.samples_per_s = static_cast<double>(stretch_samples_ * parts_.group.size()) / seconds;
  report.accuracy = evaluate(parts_.model, parts_.test, parts_.group);
  parts_.report.stretch(report, state_);
  if (report.complete) {
    state_ = {.step = state_.step, .epoch = state_.epoch + 1};
  }
}

}  // namespace muster::trainers
