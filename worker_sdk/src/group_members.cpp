#include "worker_sdk/src/group_members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "muster/worker/process_group.hpp"
#include "worker_sdk/src/rank_names.hpp"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

/// Of a rank's list when time is over: it is there or not.
constexpr milliseconds last_look_timeout{50};

std::string members_key(const std::string& group, int rank) {
  return fmt::format("{}/members/{}", members_prefix(group), rank);
}

}  // namespace

void check_members(const std::string& group, std::span<const int> ranks, int own, int size) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("group {}: ranks {}: {}", group, list_text(ranks), why));
  };
  for (int rank : ranks)
    if (rank < 0 || rank >= size)
      refuse(fmt::format("there is no rank {}; expected ranks from 0 to {}", rank, size - 1));
  if (std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) != ranks.end())
    refuse("expected ascending order, each rank once");
  if (std::find(ranks.begin(), ranks.end(), own) == ranks.end())
    refuse(fmt::format("rank {}, which makes the call, is not among them", own));
}

std::string members_prefix(const std::string& group) {
  std::string prefix = "group/";
  for (const char letter : group) {
    if (letter == '/')
      prefix += "%2F";
    else if (letter == '%')
      prefix += "%25";
    else
      prefix += letter;
  }
  return prefix;
}

std::string connecting_prefix(const std::string& group, std::span<const int> ranks) {
  return fmt::format("{}/from/{}", members_prefix(group), ranks.front());
}

std::string list_text(std::span<const int> ranks) { return fmt::format("[{}]", fmt::join(ranks, ", ")); }

void leave_members(KeyValueStore& store, const std::string& group, std::span<const int> ranks, int own) {
  store.set(members_key(group, own), list_text(ranks));
}

void compare_members(KeyValueStore& store, const std::string& group, std::span<const int> ranks, int own,
                     milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto own_list = list_text(ranks);
  std::vector<int> absent;
  for (int rank : ranks) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    const auto list = store.get(members_key(group, rank), std::max(left, last_look_timeout));
    if (!list) absent.push_back(rank);
    if (list && *list != own_list)
      throw std::invalid_argument(
          fmt::format("group {}: rank {} makes it of ranks {}, rank {} of {}; expected the same list on "
                      "all of its ranks",
                      group, own, own_list, rank, *list));
  }
  if (!absent.empty())
    throw CollectiveError(
        fmt::format("{}: {}", forming_text(group), absent_ranks_text(absent, ranks.size(), timeout)));
}

}  // namespace muster::worker
