#include "trainers/training/checkpointer.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "trainers/parallel/ddp.hpp"

namespace muster::trainers {
namespace {

bool is_whole(const TensorShard& shard) {
  const auto rows = shard.full_shape.empty() ? 1 : shard.full_shape.front();
  return shard.rows.first == 0 && shard.rows.count == rows;
}

std::vector<TensorShard> named_for_disk(const StateShards& shards) {
  std::vector<TensorShard> all;
  const auto add = [&all](const std::vector<TensorShard>& part, const char* prefix) {
    for (auto shard : part) {
      shard.name = prefix + shard.name;
      all.push_back(std::move(shard));
    }
  };
  add(shards.parameters, "model.");
  add(shards.optimizer, "optimizer.");
  return all;
}

}  // namespace

Checkpointer::Checkpointer(CheckpointerOptions options, RunIdentity identity, const StateShards& shards,
                           Optimizer& optimizer, worker::ProcessGroup& group, Report& report)
    : options_(std::move(options)),
      identity_(std::move(identity)),
      shards_(named_for_disk(shards)),
      optimizer_(optimizer),
      group_(group),
      report_(report) {
  if (options_.folder.empty()) return;
  replicated_ = agree_on_replication();
  checkpoint_.emplace(options_.folder, worker::CheckpointOptions{.keep_last = options_.keep_last}, group_,
                      slices());
}

/// A rank may hold all of tensors that are too small to be split: they look whole there, and on no other rank.
bool Checkpointer::agree_on_replication() const {
  std::array<std::int64_t, 1> split{std::all_of(shards_.begin(), shards_.end(), is_whole) ? 0 : 1};
  group_.all_reduce(worker::buffer_of(std::span<std::int64_t>(split)), worker::ReduceOp::sum)->wait();
  return split[0] == 0;
}

std::vector<worker::TensorSlice> Checkpointer::slices() {
  std::vector<worker::TensorSlice> slices;
  if (replicated_ && group_.rank() != 0) return slices;
  for (const auto& shard : shards_) {
    const bool on_host = shard.tensor->device().place() == worker::Place::host;
    mirrors_.push_back(on_host ? Tensor() : Tensor(shard.tensor->shape()));
    slices.push_back({.name = shard.name,
                      .type = worker::ElementType::f32,
                      .shape = shard.full_shape,
                      .first_row = shard.rows.first,
                      .rows = shard.rows.count,
                      .saves = replicated_ || shard.first_copy,
                      .data = on_host ? shard.tensor->data() : mirrors_.back().data()});
  }
  return slices;
}

/// Before a save. The mirrors are written only once the save before has read them: save() finishes that first.
void Checkpointer::mirror_state() {
  for (std::size_t i = 0; i < mirrors_.size(); ++i)
    if (mirrors_[i].count() > 0) mirrors_[i].copy_from(*shards_[i].tensor);
}

void Checkpointer::load_mirrors() {
  for (std::size_t i = 0; i < mirrors_.size(); ++i)
    if (mirrors_[i].count() > 0) shards_[i].tensor->copy_from(mirrors_[i]);
}

void Checkpointer::resume(TrainingState& state) {
  if (!checkpoint_) return;
  std::optional<worker::LoadedCheckpoint> loaded;
  try {
    loaded = checkpoint_->load_newest(
        [this](const worker::Facts& facts) { return why_of_another_run(facts, identity_); });
  } catch (const worker::CheckpointError& error) {
    throw std::invalid_argument(error.what());  // trying again will not help
  }
  report_.begin(checkpoint_->lineage());
  if (!loaded) return;
  loaded_ = loaded->lineage;
  state = state_from(loaded->facts);
  optimizer_.steps_taken = state.step;
  saved_step_ = state.step;
  load_mirrors();
  if (replicated_) {
    std::vector<Tensor*> all;
    for (const auto& shard : shards_) all.push_back(shard.tensor);
    broadcast(group_, all, 0);
  }
  report_.resumed(*loaded, state);
}

void Checkpointer::save(const TrainingState& state) {
  if (!checkpoint_) return;
  finish();
  const auto facts = facts_of(state, identity_);
  mirror_state();
  if (options_.in_background) {
    checkpoint_->start_save(state.step, facts);
  } else {
    conclude(checkpoint_->save(state.step, facts));
  }
}

void Checkpointer::step_done() {
  if (checkpoint_) conclude(checkpoint_->poll());
}

void Checkpointer::finish() {
  if (checkpoint_) conclude(checkpoint_->finish());
}

void Checkpointer::conclude(const std::optional<worker::SaveOutcome>& outcome) {
  if (!outcome) return;
  if (outcome->superseded) {
    report_.superseded(outcome->step, outcome->error);
    throw worker::SupersededError(outcome->error);
  }
  if (outcome->error.empty()) {
    saved_step_ = outcome->step;
    report_.checkpoint_saved(outcome->step);
  } else {
    report_.checkpoint_failed(outcome->step, outcome->error);
  }
}

}  // namespace muster::trainers
