// Where the numbers of a unit's parameters lie, in a rank's part and in a block that has all of them: pure.
//
// Every rank keeps ceil(rows / N) rows of each parameter, the last ones fewer: what they lack is filled up. So the parts
// of one parameter, one after the other, are that parameter, and a collective moves its rows to where layers expect them
// and fetches gradients from where layers leave them, without a copy:
//
//   part    | rows of p0 | rows of p2 | rows of p1, p3 and the flag |
//   block   | p0, filled up to N parts | p2, filled up | part 0 of p1, p3, the flag | part 1 of them | ... | p1 | p3 |
//
// Small parameters travel together, so that biases cost no message each: part by part, and are copied from and to a place
// of their own. All of them are a small share of the unit, so that this takes hardly any memory.
#pragma once

#include <cstdint>
#include <vector>

#include "trainers/tensor/tensor.hpp"

namespace muster::trainers {

/// Counts and places are in numbers.
struct UnitLayout {
  struct Entry {
    Shape shape;
    std::int64_t columns = 0;
    std::int64_t part_count = 0;  ///< of the longest part
    std::int64_t place_in_part = 0;
    std::int64_t place_in_block = 0;
    bool together = false;  ///< it travels with others
  };
  /// What one collective moves: `part_count` numbers of each part, and all of them from `place_in_block` on.
  struct Message {
    std::int64_t part_count = 0;
    std::int64_t place_in_part = 0;
    std::int64_t place_in_block = 0;
    std::vector<std::size_t> entries = {};
  };

  std::vector<Entry> entries;     ///< in the order of the parameters
  std::vector<Message> messages;  ///< what travels together is the last one
  std::int64_t flag_in_part = -1;
  std::int64_t parameter_count = 0;
  std::int64_t part_count = 0;        ///< numbers of a part
  std::int64_t travelling_count = 0;  ///< of all parts: the beginning of the block
  std::int64_t block_count = 0;

  /// Where a part's copy of the entry lies in the block, of those that travel together.
  std::int64_t packed_place(const Entry& entry, int part) const;
  /// And of the flag.
  std::int64_t packed_flag(int part) const;
};

enum class Flag : std::uint8_t { none, one };

/// With `Flag::one`, each part has room for one more number.
UnitLayout lay_out_unit(const std::vector<Shape>& shapes, int parts, Flag flag);

}  // namespace muster::trainers
