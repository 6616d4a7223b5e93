#include "trainers/parallel/fsdp.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "trainers/parallel/clipping.hpp"

namespace muster::trainers {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);
constexpr std::int64_t kAdamBytes = 4 * kFloatBytes;  ///< a parameter: value, gradient and two moments
constexpr std::int64_t kUnitBytes = 2 * kFloatBytes;  ///< a parameter of a whole unit: value and gradient

std::int64_t parameters_of(Module& module) {
  std::int64_t count = 0;
  for (const auto* parameter : module.parameters()) count += parameter->value.count();
  return count;
}

/// Where the model's numbers lie.
Device& device_of(Sequential& model) {
  const auto parameters = model.parameters();
  return parameters.empty() ? cpu_device() : parameters.front()->value.device();
}

/// Of no_shard, too, a unit's are there only while they are in use, where they are not the master copy itself.
bool keeps_gradients(ShardingStrategy strategy) { return strategy == ShardingStrategy::shard_optimizer; }

/// From the forward pass to the end of the backward pass they are there anyway.
bool keeps_values(ShardingStrategy strategy) {
  return keeps_gradients(strategy) || strategy == ShardingStrategy::shard_grad_op;
}

}  // namespace

FullySharded::FullySharded(Sequential& model, ShardingGroups groups, ShardingOptions options)
    : model_(model),
      groups_(groups),
      options_(options),
      pools_(device_of(model)),
      frees_after_forward_(!keeps_values(options.strategy)),
      prefetches_forward_(options.prefetch != Prefetch::none) {
  make_units();
  prefetches_backward_ = options.prefetch == Prefetch::always ||
                         (options.prefetch == Prefetch::where_it_fits && third_block_fits());
  for (std::size_t i = 0; i < units_.size(); ++i) hook(i);
}

void FullySharded::make_units() {
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < model_.size(); ++i) counts.push_back(parameters_of(model_.at(i)));
  for (const auto& layers : plan_units(counts, options_.min_num_params)) {
    Unit unit{.layers = layers, .parameters = {}, .ready = {}, .state = nullptr};
    for (auto i = layers.first; i < layers.first + layers.count; ++i) {
      const auto own = model_.at(i).parameters();
      unit.parameters.insert(unit.parameters.end(), own.begin(), own.end());
    }
    unit.ready.assign(unit.parameters.size(), false);
    const UnitOptions unit_options{.precision = options_.precision,
                                   .keep_values = keeps_values(options_.strategy),
                                   .keep_gradients = keeps_gradients(options_.strategy),
                                   // The first unit's gradients are the last to be reduced.
                                   .flag = units_.empty() ? Flag::one : Flag::none};
    unit.state = std::make_unique<ShardedUnit>(unit.parameters, groups_, unit_options, pools_);
    units_.push_back(std::move(unit));
  }
}

/// As the bound of the memory has it: with the state of Adam, of which there are as many numbers again as of values and
/// gradients.
bool FullySharded::third_block_fits() const {
  std::int64_t own = 0;
  std::int64_t largest_unit = 0;
  std::int64_t largest_block = 0;
  std::int64_t largest_part = 0;
  for (const auto& unit : units_) {
    const auto& layout = unit.state->layout();
    own += kAdamBytes * layout.part_count;
    largest_unit = std::max(largest_unit, kUnitBytes * layout.parameter_count);
    largest_block = std::max(largest_block, kFloatBytes * layout.block_count);
    largest_part = std::max(largest_part, kFloatBytes * layout.part_count);
  }
  constexpr double kBound = 1.15;
  return static_cast<double>(own + 3 * largest_block + largest_part) <=
         kBound * static_cast<double>(own + largest_unit);
}

void FullySharded::hook(std::size_t index) {
  auto& unit = units_[index];
  for (std::size_t place = 0; place < unit.parameters.size(); ++place) {
    unit.parameters[place]->on_gradient_ready = [this, index, place](Parameter&) {
      mark_ready(index, place);
    };
  }
}

Tensor& FullySharded::forward(Tensor& input) {
  Tensor* flowing = &input;
  // No backward pass may have come since the last one.
  if (frees_after_forward_ && !units_.empty()) units_.back().state->release();
  for (std::size_t i = 0; i < units_.size(); ++i) {
    auto& unit = units_[i];
    const bool is_last = i + 1 == units_.size();
    unit.state->gather();
    if (!is_last && prefetches_forward_) units_[i + 1].state->start_gather();
    for (auto layer = unit.layers.first; layer < unit.layers.first + unit.layers.count; ++layer) {
      flowing = &model_.at(layer).forward(*flowing);
    }
    // The last unit is the first that the backward pass needs.
    if (frees_after_forward_ && !is_last) unit.state->release();
  }
  return *flowing;
}

void FullySharded::prepare_backward(std::size_t index) {
  units_[index].state->gather();
  // Where parameters travel too, the gradients before them have arrived, so this waits for nothing. Elsewhere one unit's
  // may be under way while the next one's are computed.
  const auto behind = index + (frees_after_forward_ ? 1 : 2);
  if (behind < units_.size()) units_[behind].state->finish_scatter();
  units_[index].state->make_room();
}

Tensor& FullySharded::backward(Tensor& output_gradient, InputGradient input_gradient) {
  Tensor* flowing = &output_gradient;
  for (std::size_t i = units_.size(); i-- > 0;) {
    auto& unit = units_[i];
    prepare_backward(i);
    for (auto layer = unit.layers.first + unit.layers.count; layer-- > unit.layers.first;) {
      flowing = &model_.at(layer).backward(*flowing, layer == 0 ? input_gradient : InputGradient::wanted);
    }
    unit.state->release();
  }
  return *flowing;
}

void FullySharded::mark_ready(std::size_t index, std::size_t place) {
  auto& unit = units_[index];
  if (unit.ready[place]) {
    throw std::logic_error(unit.parameters[place]->name +
                           ": a second gradient before finish_gradients() took the first");
  }
  unit.ready[place] = true;
  if (!std::all_of(unit.ready.begin(), unit.ready.end(), [](bool ready) { return ready; })) return;
  if (!in_no_sync_) unit.state->start_reduce(flag_);
  // After the gradients, whose memory is free when these have come.
  if (index > 0 && prefetches_backward_) units_[index - 1].state->start_gather();
}

void FullySharded::check_all_ready() const {
  std::string missing;
  for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit) {
    for (std::size_t place = unit->ready.size(); place-- > 0;) {
      if (!unit->ready[place]) missing += (missing.empty() ? "" : ", ") + unit->parameters[place]->name;
    }
  }
  if (missing.empty()) return;
  throw std::logic_error("no gradient for " + missing +
                         " in this step: every parameter must be used in every backward pass");
}

/// Forgets which gradients were given.
void FullySharded::next_pass(Into into) {
  for (auto& unit : units_) {
    unit.ready.assign(unit.ready.size(), false);
    for (auto* parameter : unit.parameters) parameter->into = into;
  }
}

void FullySharded::finish_gradients() {
  check_all_ready();
  for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit) unit->state->finish_reduce();
  next_pass(Into::overwrite);
}

void FullySharded::no_sync(const std::function<void()>& pass) {
  {
    struct Mode {
      bool& on;
      explicit Mode(bool& mode) : on(mode) { on = true; }
      ~Mode() { on = false; }
    } const mode(in_no_sync_);
    pass();
  }
  check_all_ready();
  next_pass(Into::add);
}

double FullySharded::clip_gradients(double max_norm) {
  const auto own = parameters();
  std::array<double, 1> squares{sum_of_squares(own)};
  groups_.shard.all_reduce(worker::buffer_of(std::span<double>(squares)), worker::ReduceOp::sum)->wait();
  const double norm = std::sqrt(squares[0]);
  shorten_gradients(own, norm, max_norm);
  return norm;
}

std::vector<ParameterShard> FullySharded::shards() const {
  std::vector<ParameterShard> all;
  for (const auto& unit : units_)
    all.insert(all.end(), unit.state->shards().begin(), unit.state->shards().end());
  return all;
}

std::vector<Parameter*> FullySharded::parameters() {
  std::vector<Parameter*> all;
  for (const auto& shard : shards()) all.push_back(shard.parameter);
  return all;
}

void FullySharded::with_whole_parameters(const std::function<void()>& use) {
  for (auto& unit : units_) unit.state->gather_masters();
  use();
  for (auto& unit : units_) unit.state->release();
}

StateMemory FullySharded::memory(Optimizer& optimizer) const {
  StateMemory memory{.most_whole = pools_.most_held_bytes()};
  for (const auto& unit : units_) {
    const auto count = unit.state->layout().parameter_count;
    memory.parameters += count;
    memory.kept += unit.state->kept_bytes();
    memory.largest_unit = std::max(memory.largest_unit, kUnitBytes * count);
  }
  for (const auto& state : optimizer.state()) memory.kept += kFloatBytes * state.tensor->count();
  return memory;
}

}  // namespace muster::trainers
