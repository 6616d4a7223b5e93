// Which ranks of the world form a group: what can be seen of a list by itself, and whether its ranks all gave the same.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "worker_sdk/src/key_value_store.hpp"

namespace muster::worker {

/// Throws std::invalid_argument unless they are ranks of a world of `size`, ascending, each once, `own` among them.
void check_members(const std::string& group, std::span<const int> ranks, int own, int size);

/// Of this group's keys in the store: no name gives keys that are another group's.
std::string members_prefix(const std::string& group);

/// Of the keys by which these ranks connect: others may call a group of theirs the same. Lists with a first rank in common
/// are compared before.
std::string connecting_prefix(const std::string& group, std::span<const int> ranks);

/// "[0, 2]".
std::string list_text(std::span<const int> ranks);

/// Leaves this rank's list in the store for the others.
void leave_members(KeyValueStore& store, const std::string& group, std::span<const int> ranks, int own);

/// Waits until all have left theirs. Throws std::invalid_argument that names both lists if a rank among these has given
/// another one; CollectiveError that names those that did not come in time, or if the store cannot be reached.
void compare_members(KeyValueStore& store, const std::string& group, std::span<const int> ranks, int own,
                     std::chrono::milliseconds timeout);

}  // namespace muster::worker
