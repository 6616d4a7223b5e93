// A state that is spread over the ranks of a test: two matrices, a vector shorter than the world, a number.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "muster/worker/sharded_checkpoint.hpp"

namespace muster::worker::test {

/// How ranks share the rows.
enum class Sharing : std::uint8_t { split, pairs_of_copies, whole_on_each };

class ShardedState {
 public:
  ShardedState(int rank, int size, Sharing sharing) {
    add("model.weight", {7, 3}, rank, size, sharing);
    add("optimizer.m", {1000, 50}, rank, size, sharing);
    add("bias", {3}, rank, size, sharing);
    add("count", {}, rank, size, sharing);
  }

  std::vector<TensorSlice> slices() const { return slices_; }

  /// Each element tells its tensor, its place and `salt`.
  void set(float salt) {
    each([salt](float& value, float expected) { value = expected + salt; });
  }
  bool holds(float salt) {
    bool same = true;
    each([&](float& value, float expected) { same = same && value == expected + salt; });
    return same;
  }

 private:
  void add(const char* name, std::vector<std::int64_t> shape, int rank, int size, Sharing sharing) {
    const std::int64_t rows = shape.empty() ? 1 : shape[0];
    int parts = size;
    int part = rank;
    bool first_copy = true;
    if (sharing == Sharing::pairs_of_copies) {
      parts = size / 2;
      part = rank % parts;
      first_copy = rank < parts;
    } else if (sharing == Sharing::whole_on_each) {
      parts = 1;
      part = 0;
      first_copy = rank == 0;
    }
    const auto each = (rows + parts - 1) / parts;
    const auto first = std::min(rows, each * part);
    TensorSlice slice{.name = name,
                      .shape = std::move(shape),
                      .first_row = first,
                      .rows = std::min(each, rows - first),
                      .saves = first_copy};
    memory_.emplace_back(slice.bytes() / sizeof(float));
    slice.data = memory_.back().data();
    slices_.push_back(std::move(slice));
  }

  void each(const auto& visit) {
    for (std::size_t t = 0; t < slices_.size(); ++t) {
      const auto begin =
          static_cast<std::size_t>(slices_[t].first_row) * slices_[t].row_bytes() / sizeof(float);
      for (std::size_t i = 0; i < memory_[t].size(); ++i)
        visit(memory_[t][i], static_cast<float>(t * 100'000 + begin + i));
    }
  }

  std::deque<std::vector<float>> memory_;
  std::vector<TensorSlice> slices_;
};

}  // namespace muster::worker::test
