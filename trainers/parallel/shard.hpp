// What a rank holds of a training's tensors: all rows of each, or a part of them.
//
// Tensors are split on their first extent, each for itself, as PyTorch's FSDP2 does: of `parts` parts all have
// ceil(rows / parts) rows but for the last ones, which have fewer or none. So a part of a parameter has a name, a shape
// and a place of its own, whatever it was communicated with, and what one world has split another can put together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainers/optim/optimizer.hpp"

namespace muster::trainers {

struct Rows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// The rows of the `part`-th of `parts`. `first` is never beyond `rows`.
Rows rows_of_part(std::int64_t rows, int parts, int part);

/// The shape that these rows have.
Shape shape_of_rows(const Shape& full_shape, Rows rows);

/// A parameter as an optimizer sees it on this rank: value and gradient have some rows of the whole.
struct ParameterShard {
  Parameter* parameter = nullptr;
  Shape full_shape;
  Rows rows;
  /// Of the ranks that hold the same rows, exactly one has true: it is the one to save them.
  bool first_copy = true;
};

/// A tensor of the training's state, as far as this rank holds it.
struct TensorShard {
  std::string name;  ///< "0.weight" for a parameter's value, "exp_avg.0.weight" for an optimizer's state
  Shape full_shape;
  Rows rows;
  bool first_copy = true;
  Tensor* tensor = nullptr;  ///< shape_of_rows(full_shape, rows), f32
};

/// All that a checkpoint must hold but for the counters. The same names in the same order on every rank.
struct StateShards {
  std::vector<TensorShard> parameters;
  std::vector<TensorShard> optimizer;
};

/// `optimizer` was made with the parameters of `shards`. What it returns points into both.
StateShards state_shards(std::span<const ParameterShard> shards, Optimizer& optimizer);

/// Every rank holds everything (data parallelism): rank 0's is the first copy.
std::vector<ParameterShard> whole_parameters(const std::vector<Parameter*>& parameters, int rank);

}  // namespace muster::trainers
