// Fully sharded data parallelism: every rank computes on its own part of the batch with the whole model, but keeps only
// some rows of each parameter, of its gradient and of the optimizer's state. (Zhao et al., "PyTorch FSDP: experiences on
// scaling fully sharded data parallel", VLDB 2023; strategies: strategy.hpp.)
//
//   FullySharded sharded(model, groups, {.strategy = ShardingStrategy::full_shard});
//   Adam optimizer(sharded.parameters());              // has state for this rank's rows only
//   auto& logits = sharded.forward(batch);             // gathers unit after unit, and frees each again
//   ... loss ...
//   sharded.backward(gradient, InputGradient::unwanted);   // gathers them again, last first, and reduces gradients
//   sharded.finish_gradients();
//   optimizer.step();
//
// While a unit computes, the next one's parameters are on their way (prefetch); while the gradient of a unit's input is
// computed, its parameters' gradients are. A unit's parameters are one block of its size, its gradients another, and
// nothing else is so large (sharded_unit.hpp). Two blocks are in use at most: in the forward pass the parameters of two
// units, in the backward pass the parameters and the gradients of one, or the gradients of one on their way and the
// parameters of the next. Prefetching in the backward pass takes a third. By default it does so only where that is within
// 1.15 times what Adam's state takes and one unit: a unit of more than about 0.85 of a rank's share waits.
//
// The model belongs to this object while it lives: outside forward() and backward() its layers hold no parameters, but
// in with_whole_parameters().
#pragma once

#include <memory>
#include <vector>

#include "trainers/parallel/parallelism.hpp"
#include "trainers/parallel/sharded_unit.hpp"
#include "trainers/parallel/strategy.hpp"
#include "trainers/parallel/wrap_policy.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {

enum class Prefetch : std::uint8_t {
  none,
  where_it_fits,  ///< in the backward pass only where memory stays within its bound
  always
};

struct ShardingOptions {
  ShardingStrategy strategy = ShardingStrategy::full_shard;
  MixedPrecision precision = {};
  std::int64_t min_num_params = 1'000'000;  ///< of a unit: see wrap_policy.hpp
  Prefetch prefetch = Prefetch::where_it_fits;
};

/// What the model's state takes on this rank, in bytes: parameters, gradients and the optimizer's state, without
/// activations.
struct StateMemory {
  std::int64_t parameters = 0;    ///< their number, in the whole model
  std::int64_t kept = 0;          ///< what stays: for full_shard 16 bytes x parameters / ranks with Adam
  std::int64_t most_whole = 0;    ///< the most that was held for whole units at one time
  std::int64_t largest_unit = 0;  ///< one unit's parameters and gradients, in float32

  std::int64_t most() const { return kept + most_whole; }
};

class FullySharded final : public Module, public Parallelism {
 public:
  /// A collective call of all ranks. Model and groups must outlive it.
  FullySharded(Sequential& model, ShardingGroups groups, ShardingOptions options);

  Tensor& forward(Tensor& input) override;
  Tensor& backward(Tensor& output_gradient, InputGradient input_gradient) override;
  /// This rank's rows of each, for an optimizer.
  std::vector<Parameter*> parameters() override;

  void finish_gradients() override;
  void no_sync(const std::function<void()>& pass) override;
  double clip_gradients(double max_norm) override;
  void raise_flag(bool raised) override { flag_ = raised; }
  bool flag_was_raised() const override { return units_.front().state->flag_was_raised(); }

  /// For checkpoints; in the order of parameters().
  std::vector<ParameterShard> shards() const;
  /// A collective call: runs `use` while the model's layers hold the whole master copy, in float32.
  void with_whole_parameters(const std::function<void()>& use);

  StateMemory memory(Optimizer& optimizer) const;
  std::size_t unit_count() const { return units_.size(); }

 private:
  struct Unit {
    LayerRange layers;
    std::vector<Parameter*> parameters;
    std::vector<bool> ready;  ///< which gradients this pass has given
    std::unique_ptr<ShardedUnit> state;
  };

  void make_units();
  bool third_block_fits() const;
  void hook(std::size_t index);
  void mark_ready(std::size_t index, std::size_t place);
  void prepare_backward(std::size_t index);
  void check_all_ready() const;
  void next_pass(Into into);

  Sequential& model_;
  ShardingGroups groups_;
  ShardingOptions options_;
  UnitPools pools_;  // before the units, which give back to it
  std::vector<Unit> units_;
  bool frees_after_forward_;
  bool prefetches_forward_;
  bool prefetches_backward_ = false;
  bool in_no_sync_ = false;
  bool flag_ = false;
};

}  // namespace muster::trainers
