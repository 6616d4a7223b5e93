#include "trainers/training/checkpointer.hpp"

#include <array>
#include <bit>
#include <stdexcept>

#include "trainers/parallel/ddp.hpp"

namespace muster::trainers {
namespace {

enum Outcome : std::int64_t { kNone = 0, kLoaded = 1, kUnusable = 2 };

std::int64_t broadcast_outcome(worker::ProcessGroup& group, Outcome outcome) {
  std::array<std::int64_t, 1> value{outcome};
  group.broadcast(worker::buffer_of(std::span<std::int64_t>(value)), 0)->wait();
  return value[0];
}

/// Rank 0's text on every rank.
std::string broadcast_text(worker::ProcessGroup& group, std::string text) {
  std::array<std::int64_t, 1> size{static_cast<std::int64_t>(text.size())};
  group.broadcast(worker::buffer_of(std::span<std::int64_t>(size)), 0)->wait();
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.resize(static_cast<std::size_t>(size[0]));
  group.broadcast(worker::buffer_of(std::span<std::uint8_t>(bytes)), 0)->wait();
  return {bytes.begin(), bytes.end()};
}

worker::TensorRef reference(std::string name, Tensor& tensor) {
  return {.name = std::move(name),
          .type = worker::ElementType::f32,
          .shape = tensor.shape(),
          .data = tensor.data()};
}

}  // namespace

Checkpointer::Checkpointer(CheckpointerOptions options, RunIdentity identity,
                           std::vector<Parameter*> parameters, Optimizer& optimizer,
                           worker::ProcessGroup& group, Report& report)
    : identity_(std::move(identity)),
      parameters_(std::move(parameters)),
      optimizer_(optimizer),
      group_(group),
      report_(report) {
  if (!options.folder.empty()) {
    store_.emplace(options.folder, worker::CheckpointOptions{.keep_last = options.keep_last});
  }
}

std::vector<worker::TensorRef> Checkpointer::tensors() {
  std::vector<worker::TensorRef> all;
  for (auto* parameter : parameters_) all.push_back(reference("model." + parameter->name, parameter->value));
  for (auto& part : optimizer_.state()) all.push_back(reference("optimizer." + part.name, *part.tensor));
  return all;
}

std::optional<worker::LoadedCheckpoint> Checkpointer::load(TrainingState& state) {
  try {
    auto loaded = store_->load_newest(tensors());
    if (loaded) {
      check_same_run(loaded->facts, identity_);
      state = state_from(loaded->facts);
    }
    return loaded;
  } catch (const worker::CheckpointError& error) {
    throw std::invalid_argument(error.what());  // trying again will not help
  }
}

void Checkpointer::resume(TrainingState& state) {
  if (!store_) return;
  if (group_.rank() != 0) {
    const auto outcome = broadcast_outcome(group_, kNone);
    if (outcome == kUnusable) throw std::invalid_argument(broadcast_text(group_, ""));
    if (outcome == kLoaded) share(state);
    return;
  }
  std::optional<worker::LoadedCheckpoint> loaded;
  try {
    loaded = load(state);
  } catch (const std::invalid_argument& error) {
    // The others must not wait for what never comes; and whichever rank ends first, the cause is to be seen.
    broadcast_outcome(group_, kUnusable);
    broadcast_text(group_, error.what());
    throw;
  }
  broadcast_outcome(group_, loaded ? kLoaded : kNone);
  if (!loaded) return;
  share(state);
  report_.resumed(*loaded, state);
}

void Checkpointer::share(TrainingState& state) {
  std::array<std::int64_t, 5> numbers{state.step, state.epoch, state.position, state.loss_samples,
                                      std::bit_cast<std::int64_t>(state.loss_sum)};
  group_.broadcast(worker::buffer_of(std::span<std::int64_t>(numbers)), 0)->wait();
  state = {.step = numbers[0],
           .epoch = numbers[1],
           .position = numbers[2],
           .loss_samples = numbers[3],
           .loss_sum = std::bit_cast<double>(numbers[4])};
  optimizer_.steps_taken = state.step;

  std::vector<Tensor*> all;
  for (auto* parameter : parameters_) all.push_back(&parameter->value);
  for (auto& part : optimizer_.state()) all.push_back(part.tensor);
  broadcast(group_, all, 0);
}

void Checkpointer::save(const TrainingState& state) {
  if (!store_ || group_.rank() != 0) return;
  try {
    store_->save(state.step, tensors(), facts_of(state, identity_));
    report_.checkpoint_saved(state.step);
  } catch (const worker::CheckpointError& error) {
    report_.checkpoint_failed(state.step, error.what());
  }
}

}  // namespace muster::trainers
