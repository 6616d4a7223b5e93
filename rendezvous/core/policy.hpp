// What a job allows: how many nodes, how many restarts, how long each wait may take. Given once, when the job
// is made; only min_nodes and max_nodes may change later (an operator's "scale").
#pragma once

#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/time.hpp"

namespace muster::rendezvous {

constexpr int unlimited = std::numeric_limits<int>::max();

/// At most `count` in any stretch of time of length `per`.
struct WindowedBudget {
  int count = 1;
  Duration per = std::chrono::hours(1);
  bool operator==(const WindowedBudget&) const = default;
};

struct JobPolicy {
  using ms = std::chrono::milliseconds;
  using s = std::chrono::seconds;

  int min_nodes = 1;
  int max_nodes = 1;

  // Failures: one budget for the whole job.
  int max_restarts = 0;
  std::optional<WindowedBudget> restart_window;  ///< on top of max_restarts
  /// A program that exits by itself earlier than this, twice in a row with the same code and before it
  /// initialised, is not started a third time. Zero: never give up early.
  Duration startup_window = s(5);

  // Membership changes: they cost no restart, but too many of them leave no time to work.
  WindowedBudget membership_changes{10, std::chrono::hours(1)};  ///< its count may be `unlimited`
  int undamped_changes = 3;          ///< in that window; each further one doubles the settle window
  Duration settle_window = ms(500);  ///< changes that follow each other this closely make one round
  Duration settle_limit = s(5);      ///< a stream of changes holds a round back no longer than this
  Duration damped_settle_cap = s(60);
  /// So old a round becomes before a newcomer ends it, unless it makes a step sooner. Zero: it may end at once.
  Duration first_step_timeout = s(60);

  // Forming a round.
  Duration join_deadline = s(600);
  Duration last_call = s(30);             ///< from min_nodes on, for nodes nobody has heard of yet
  Duration waiting_news_interval = s(2);  ///< a waiting node hears of changes at most this often

  // Ending a round.
  Duration drain_grace = s(30);  ///< for workers to save, before a membership change
  Duration stop_deadline =
      s(60);  ///< for an agent to stop its workers (must exceed its grace), then to rejoin
  /// From the first node's success on, how long it waits for the others. Nothing: as long as they run.
  std::optional<Duration> exit_barrier_limit;

  // Broken connections: how long a node may be away before it is lost.
  Duration closed_grace = s(2);    ///< its agent closed the connection, or died
  Duration broken_grace = s(20);   ///< the network broke it
  Duration resume_window = s(60);  ///< the daemon itself was away

  // Nodes that fail again and again.
  Duration cooldown_base = s(10);  ///< after the second failure; doubles with each further one
  Duration cooldown_cap = s(600);
  Duration cooldown_memory = s(1800);  ///< a failure older than this is forgotten
  int cooldown_refuse_after = 5;  ///< with this many failures in a minute a node is sent away, not parked

  bool allow_chaos = false;  ///< an operator may rehearse faults (rehearsal.hpp)

  bool fixed_size() const { return min_nodes == max_nodes; }
  bool operator==(const JobPolicy&) const = default;
};

constexpr int max_nodes_limit = 100'000;
constexpr int max_restarts_limit = 1'000'000;

/// The policy itself, or which field is wrong and what is allowed.
Result<JobPolicy> validate(JobPolicy policy);

}  // namespace muster::rendezvous
