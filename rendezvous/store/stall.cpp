#include "rendezvous/store/stall.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/ranks.hpp"
#include "rendezvous/store/known_keys.hpp"

namespace muster::rendezvous {
namespace {

constexpr std::size_t waits_told_max = 4;
constexpr std::size_t peers_told_max = 3;

using Connection = StoreDiagnosis::Connection;

/// "10.0.0.2" of "10.0.0.2:51234", "fd00::2" of "[fd00::2]:51234".
std::string host_of(const std::string& peer) {
  const auto host = peer.substr(0, peer.rfind(':'));
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

class Story {
 public:
  Story(const StallView& view, const StoreRound& round) : view_(view), round_(round) {
    for (const auto& connection : view.diagnosis.connections) {
      const auto rank = rank_of(connection);
      ranks_.push_back(rank);
      if (!rank) continue;
      connected_.insert(*rank);
      if (connection.joined) joined_.insert(*rank);
    }
  }

  std::optional<std::string> tell() {
    tell_waits();
    if (view_.late) tell_missing();
    if (parts_.empty()) return std::nullopt;
    return fmt::format("{}", fmt::join(parts_, "; "));
  }

 private:
  /// By the process id that newer clients send, for a worker of this host; else by what it has written.
  std::optional<int> rank_of(const Connection& connection) const {
    const auto host = host_of(connection.peer);
    const bool local = host == view_.own_address || host.starts_with("127.") || host == "::1";
    if (local && connection.pid != 0)
      for (const auto& worker : round_.local_workers)
        if (static_cast<std::uint32_t>(worker.pid) == connection.pid) return worker.rank;
    for (const auto& key : connection.keys_set) {
      const auto known = recognise_key(key);
      const bool tells = known && known->group.empty() && known->owner;
      if (tells && *known->owner < round_.world_size) return known->owner;
    }
    return std::nullopt;
  }

  std::string named(int rank) const {
    for (const auto& worker : round_.local_workers)
      if (worker.rank == rank) return fmt::format("rank {} (pid {})", rank, worker.pid);
    return fmt::format("rank {}", rank);
  }

  void tell_waits() {
    struct Waiters {
      std::set<int> ranks;
      std::set<std::string> others;
      std::size_t count() const { return ranks.size() + others.size(); }
    };
    std::map<std::string, Waiters> by_key;
    const auto& connections = view_.diagnosis.connections;
    for (std::size_t i = 0; i < connections.size(); ++i) {
      if (connections[i].waiting_periods < view_.periods_long) continue;
      for (const auto& key : connections[i].waits_for) {
        if (ranks_[i]) {
          by_key[key].ranks.insert(*ranks_[i]);
        } else {
          by_key[key].others.insert(connections[i].peer);
        }
      }
    }
    std::vector<std::pair<std::string, Waiters>> waits(by_key.begin(), by_key.end());
    std::stable_sort(waits.begin(), waits.end(),
                     [](const auto& a, const auto& b) { return a.second.count() > b.second.count(); });
    for (std::size_t i = 0; i < std::min(waits.size(), waits_told_max); ++i)
      tell_wait(waits[i].first, waits[i].second.ranks, waits[i].second.others);
    if (waits.size() > waits_told_max)
      parts_.push_back(fmt::format("{} more keys are waited for", waits.size() - waits_told_max));
  }

  void tell_wait(const std::string& key, const std::set<int>& ranks, const std::set<std::string>& others) {
    std::vector<std::string> who;
    if (!ranks.empty()) who.push_back(ranks_text(ranks));
    std::vector<std::string> peers(others.begin(), others.end());
    if (peers.size() > peers_told_max) {
      who.push_back(fmt::format("{} other workers", peers.size()));
    } else {
      for (const auto& peer : peers) who.push_back("the worker at " + peer);
    }
    const bool one = ranks.size() + others.size() == 1;
    parts_.push_back(
        fmt::format("{} {} for {}", fmt::join(who, " and "), one ? "waits" : "wait", awaited_text(key)));
    const auto known = recognise_key(key);
    if (known && known->group.empty() && known->owner) tell_of(*known->owner);
  }

  /// What is known of a rank that others wait for, once.
  void tell_of(int rank) {
    if (!told_.insert(rank).second) return;
    if (connected_.contains(rank)) {
      parts_.push_back(named(rank) + " is connected");
    } else if (all_joined_are_known()) {
      parts_.push_back(named(rank) + " has not connected");
    }
  }

  bool all_joined_are_known() const {
    return view_.diagnosis.joined && std::cmp_equal(joined_.size(), *view_.diagnosis.joined);
  }

  void tell_missing() {
    const auto joined = view_.diagnosis.joined.value_or(0);
    if (joined <= 0 || joined >= round_.world_size) return;
    if (!all_joined_are_known()) {
      parts_.push_back(fmt::format("{} of {} workers have connected", joined, round_.world_size));
      return;
    }
    std::set<int> missing;
    for (int rank = 0; rank < round_.world_size; ++rank)
      if (!joined_.contains(rank) && !told_.contains(rank)) missing.insert(rank);
    if (missing.empty()) return;
    const auto who = missing.size() == 1 ? named(*missing.begin()) : ranks_text(missing);
    parts_.push_back(fmt::format("{} {} not connected", who, missing.size() == 1 ? "has" : "have"));
  }

  const StallView& view_;
  const StoreRound& round_;
  std::vector<std::optional<int>> ranks_;  ///< of the connections, in their order
  std::set<int> connected_;
  std::set<int> joined_;
  std::set<int> told_;
  std::vector<std::string> parts_;
};

}  // namespace

std::optional<std::string> describe_stall(const StallView& view, const StoreRound& round) {
  return Story(view, round).tell();
}

}  // namespace muster::rendezvous
