// What of a model's state each rank keeps for itself, and what all of them keep alike.
//
//                     parameters                 gradients     optimizer state   bytes a parameter (fp32, Adam)
//   full_shard        own rows; whole in use     own rows      own rows          16 / N + a unit or two
//   shard_grad_op     whole from forward to the  own rows      own rows          16 / N + 4
//                     end of backward
//   hybrid_shard      as full_shard among the ranks of a node, the same on every node
//   shard_optimizer   whole                      whole         own rows          8 + 8 / N and what is cut
//   no_shard          whole                      whole         whole             16: data parallelism; where numbers
//                                                                                travel in bf16 and a unit or two
//
// The names are PyTorch's; shard_optimizer is stage 1, shard_grad_op stage 2 and full_shard stage 3 of Rajbhandari et
// al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020.
#pragma once

#include <cstdint>

#include "muster/worker/process_group.hpp"

namespace muster::trainers {

enum class ShardingStrategy : std::uint8_t {
  full_shard,
  shard_grad_op,
  hybrid_shard,
  shard_optimizer,
  no_shard
};

/// The ranks that share one copy of the state, and those that hold the same rows in other copies. Together they are the
/// world: `shard.size() x replicate.size()` ranks.
struct ShardingGroups {
  worker::ProcessGroup& shard;
  worker::ProcessGroup& replicate;
};

}  // namespace muster::trainers
