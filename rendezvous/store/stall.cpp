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
constexpr std::size_t nodes_told_max = 4;

using Connection = StoreDiagnosis::Connection;
using Node = StoreRound::Node;

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
      if (!rank) {
        if (connection.joined) ++nameless_of_[node_from(host_of(connection.peer))];
        continue;
      }
      const auto [known, first] = connected_.try_emplace(*rank, &connection);
      if (!first && known->second->pid == 0) known->second = &connection;
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
    if (is_local(host) && connection.pid != 0)
      for (const auto& worker : round_.local_workers)
        if (static_cast<std::uint32_t>(worker.pid) == connection.pid) return worker.rank;
    for (const auto& key : connection.keys_set) {
      const auto known = recognise_key(key);
      const bool tells = known && known->group.empty() && known->owner;
      if (tells && *known->owner < round_.world_size) return known->owner;
    }
    const Node* node = connection.joined ? node_from(host) : nullptr;
    if (node != nullptr && node->workers == 1) return node->first_rank;
    return std::nullopt;
  }

  bool is_local(const std::string& host) const {
    return host == view_.own_address || host.starts_with("127.") || host == "::1";
  }

  const StoreRound::Worker* local_worker(int rank) const {
    for (const auto& worker : round_.local_workers)
      if (worker.rank == rank) return &worker;
    return nullptr;
  }

  const Node* node_of(int rank) const {
    for (const auto& node : round_.nodes)
      if (node.first_rank <= rank && rank < node.first_rank + node.workers) return &node;
    return nullptr;
  }

  /// The one node whose workers come from there; null if there is none, or several are on that host.
  const Node* node_from(const std::string& host) const {
    const Node* found = nullptr;
    for (const auto& node : round_.nodes) {
      if (node.address != host && !(is_local(host) && is_local(node.address))) continue;
      if (found != nullptr) return nullptr;
      found = &node;
    }
    return found;
  }

  /// "node b at 10.0.0.2, pid 4711", as much of it as is known.
  std::string place_of(int rank) const {
    const auto* here = local_worker(rank);
    const auto connected = connected_.find(rank);
    std::vector<std::string> facts;
    if (const Node* node = node_of(rank)) {
      const bool far = here == nullptr && !node->address.empty();
      facts.push_back("node " + node->name + (far ? " at " + node->address : ""));
    } else if (here == nullptr && connected != connected_.end()) {
      facts.push_back("at " + host_of(connected->second->peer));
    }
    if (here != nullptr) {
      facts.push_back(fmt::format("pid {}", here->pid));
    } else if (connected != connected_.end() && connected->second->pid != 0) {
      facts.push_back(fmt::format("pid {}", connected->second->pid));
    }
    return fmt::format("{}", fmt::join(facts, ", "));
  }

  std::string named(int rank) const {
    const auto place = place_of(rank);
    return place.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, place);
  }

  /// With their nodes, where those are known and few.
  std::string named(const std::set<int>& ranks) const {
    if (ranks.size() == 1) return named(*ranks.begin());
    std::map<const Node*, std::set<int>> by_node;
    for (const int rank : ranks) by_node[node_of(rank)].insert(rank);
    if (by_node.size() > nodes_told_max || by_node.contains(nullptr)) return ranks_text(ranks);
    std::vector<std::string> texts;
    for (const auto& [node, its] : by_node) {
      const bool far = local_worker(*its.begin()) == nullptr && !node->address.empty();
      texts.push_back(its.size() == 1 ? named(*its.begin())
                                      : fmt::format("{} (node {}{})", ranks_text(its), node->name,
                                                    far ? " at " + node->address : ""));
    }
    return fmt::format("{}", fmt::join(texts, " and "));
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
    } else if (is_missing(rank)) {
      parts_.push_back(named(rank) + " has not connected");
    } else if (const Node* node = node_of(rank)) {
      const bool all_here = accounted() >= round_.world_size || joined_of(*node) >= node->workers;
      parts_.push_back(named(rank) + (all_here ? " is connected" : " has not written it"));
    }
  }

  int nameless_of(const Node* node) const {
    const auto found = nameless_of_.find(node);
    return found == nameless_of_.end() ? 0 : found->second;
  }

  int joined_of(const Node& node) const {
    int ranks = nameless_of(&node);
    for (const int rank : joined_) ranks += node_of(rank) == &node ? 1 : 0;
    return ranks;
  }

  /// Joined and connected, of known rank or not.
  std::int64_t accounted() const {
    std::int64_t all = std::ssize(joined_);
    for (const auto& [node, count] : nameless_of_) all += count;
    return all;
  }

  /// Whoever joined is another rank, or of another node.
  bool is_missing(int rank) const {
    if (joined_.contains(rank)) return false;
    if (all_joined_are_known()) return true;
    const Node* node = node_of(rank);
    if (node == nullptr || nameless_of(node) > 0 || nameless_of(nullptr) > 0) return false;
    return view_.diagnosis.joined && accounted() == *view_.diagnosis.joined;
  }

  bool all_joined_are_known() const {
    return view_.diagnosis.joined && std::cmp_equal(joined_.size(), *view_.diagnosis.joined);
  }

  void tell_missing() {
    const auto joined = view_.diagnosis.joined.value_or(0);
    if (joined <= 0 || joined >= round_.world_size) return;
    if (!all_joined_are_known()) {
      parts_.push_back(fmt::format("{} of {} workers have connected", joined, round_.world_size));
      if (round_.nodes.empty()) return;
    }
    std::set<int> missing;
    for (int rank = 0; rank < round_.world_size; ++rank)
      if (!told_.contains(rank) && is_missing(rank)) missing.insert(rank);
    if (missing.empty()) return;
    parts_.push_back(
        fmt::format("{} {} not connected", named(missing), missing.size() == 1 ? "has" : "have"));
  }

  const StallView& view_;
  const StoreRound& round_;
  std::vector<std::optional<int>> ranks_;       ///< of the connections, in their order
  std::map<int, const Connection*> connected_;  ///< by rank; one with a process id if there is one
  std::set<int> joined_;
  std::map<const Node*, int> nameless_of_;  ///< joined connections of no known rank; null: of no known node
  std::set<int> told_;
  std::vector<std::string> parts_;
};

}  // namespace

std::optional<std::string> describe_stall(const StallView& view, const StoreRound& round) {
  return Story(view, round).tell();
}

std::int64_t joined_now(const StoreDiagnosis& diagnosis) {
  std::set<std::pair<std::string, std::uint32_t>> workers;
  std::int64_t nameless = 0;
  for (const auto& connection : diagnosis.connections) {
    if (!connection.joined) continue;
    if (connection.pid == 0) {
      ++nameless;
    } else {
      workers.emplace(host_of(connection.peer), connection.pid);
    }
  }
  return nameless + std::ssize(workers);
}

std::optional<std::string> describe_crowd(std::int64_t joined, int world_size) {
  if (joined <= world_size) return std::nullopt;
  return fmt::format("{} workers joined a world of {}: is another job using this port?", joined, world_size);
}

}  // namespace muster::rendezvous
