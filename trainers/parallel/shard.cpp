#include "trainers/parallel/shard.hpp"

#include <algorithm>
#include <stdexcept>

namespace muster::trainers {
namespace {

const ParameterShard& shard_of(std::span<const ParameterShard> shards, const NamedTensor& state) {
  const auto found = std::find_if(shards.begin(), shards.end(),
                                  [&](const auto& shard) { return shard.parameter == state.of; });
  if (found == shards.end())
    throw std::logic_error(state.name + ": the optimizer's state of no parameter here");
  return *found;
}

TensorShard tensor_shard(const ParameterShard& shard, const std::string& name, Tensor& tensor) {
  return {.name = name,
          .full_shape = shard.full_shape,
          .rows = shard.rows,
          .first_copy = shard.first_copy,
          .tensor = &tensor};
}

}  // namespace

Rows rows_of_part(std::int64_t rows, int parts, int part) {
  const auto each = (rows + parts - 1) / parts;
  const auto first = std::min(rows, each * part);
  return {.first = first, .count = std::min(each, rows - first)};
}

Shape shape_of_rows(const Shape& full_shape, Rows rows) {
  Shape shape = full_shape;
  shape.at(0) = rows.count;
  return shape;
}

StateShards state_shards(std::span<const ParameterShard> shards, Optimizer& optimizer) {
  StateShards all;
  for (const auto& shard : shards) {
    all.parameters.push_back(tensor_shard(shard, shard.parameter->name, shard.parameter->value));
  }
  for (const auto& state : optimizer.state()) {
    all.optimizer.push_back(tensor_shard(shard_of(shards, state), state.name, *state.tensor));
  }
  return all;
}

std::vector<ParameterShard> whole_parameters(const std::vector<Parameter*>& parameters, int rank) {
  std::vector<ParameterShard> shards;
  for (auto* parameter : parameters) {
    const auto& shape = parameter->value.shape();
    shards.push_back({.parameter = parameter,
                      .full_shape = shape,
                      .rows = {.first = 0, .count = shape.at(0)},
                      .first_copy = rank == 0});
  }
  return shards;
}

}  // namespace muster::trainers
