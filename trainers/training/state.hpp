// Where a run stands, beside its tensors: what a checkpoint keeps as facts. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "muster/worker/checkpoint.hpp"

namespace muster::trainers {

struct TrainingState {
  std::int64_t step = 0;          ///< optimizer steps since the run began
  std::int64_t epoch = 0;         ///< epochs that are complete
  std::int64_t position = 0;      ///< in the epoch under way (data/sampler.hpp)
  std::int64_t loss_samples = 0;  ///< of the epoch under way, on all ranks
  double loss_sum = 0;            ///< over those samples
  std::int64_t global_batch = 0;  ///< samples a step of all ranks; 0: not known
};

/// What a run is. The first three must be the same when it goes on, or the numbers would mean something else;
/// the others may change.
struct RunIdentity {
  std::string model;  ///< "mlp 784-256-10 relu, adam"
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
  int world_size = 1;
  std::int64_t batch_size = 0;
};

/// Numbers as text, without loss ("0x1.8p+1" for the loss).
worker::Facts facts_of(const TrainingState& state, const RunIdentity& identity);

/// Throws std::invalid_argument that names the missing or malformed fact.
TrainingState state_from(const worker::Facts& facts);

/// What differs and what to do, as a sentence; empty if the run can go on from there. Throws std::invalid_argument as
/// above.
std::string why_of_another_run(const worker::Facts& facts, const RunIdentity& identity);

}  // namespace muster::trainers
