// What the ranks of a group are about to call, as they tell each other, and what is said when it is not the same: pure.
//
//   record  = tag u32 (little-endian), text, zeros up to record_bytes; a longer text is cut off
//   latest  = sequence number, space, text                              (in the store)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker_sdk/src/operation.hpp"
#include "worker_sdk/src/rank_names.hpp"

namespace muster::worker {

constexpr std::size_t record_bytes = 256;
using CallRecord = std::array<std::uint8_t, record_bytes>;

CallRecord encode_call(const Operation& operation);

/// `records` has one record for each rank of the group. Nothing if all are the same; else "ranks 0, 2 call all_reduce
/// #5 (sum, 10 x F32); rank 1 calls barrier #5".
std::optional<std::string> disagreement(std::span<const std::uint8_t> records, const RankNames& names);

/// A rank's latest call, as the store has it.
struct LatestCall {
  std::uint64_t sequence = 0;
  std::string text;
};
std::string encode_latest(const LatestCall& call);
/// Nothing for a text that is none.
std::optional<LatestCall> decode_latest(const std::string& text);

/// Those of the group that have not come to the `sequence`-th call: "rank 1 has not called it, its last was all_reduce
/// #4 (sum, 10 x F32)". Empty if all have. `latest[r]` is nothing for a rank that has called nothing yet.
std::string absent_text(const std::vector<std::optional<LatestCall>>& latest, std::uint64_t sequence,
                        const RankNames& names);

}  // namespace muster::worker
