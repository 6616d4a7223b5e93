// Everything that descends from this agent: whatever loses its parent becomes our child (sub-reaper), so
// that nothing of the job can run away, by setsid neither.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace muster::agent {

/// A worker as its descendants are known by: its group's leader, and the MUSTER_ROUND and RANK it was started with.
struct WorkerKin {
  pid_t leader = 0;
  int round = 0;
  int rank = 0;
};

/// Used from one thread, the executor's. Children that exist before are no part of the job and left alone.
class Descendants {
 public:
  using Swept = std::function<void(std::vector<std::string> survivors)>;

  explicit Descendants(boost::asio::any_io_executor executor);

  /// Not of the job: never killed, never reaped here (the guard, a daemon).
  void spare(pid_t pid) { spared_.insert(pid); }
  /// It is gone, and its number may be somebody else's by now.
  void spare_no_more(pid_t pid) { spared_.erase(pid); }

  /// `tell` is called on each SIGCHLD.
  void on_child_changed(std::function<void()> tell) { tell_ = std::move(tell); }

  /// A worker's main process is killed and reaped by its owner alone.
  void worker_started(pid_t pid);
  /// It is reaped. What it left behind and still carries its RANK and MUSTER_ROUND is killed at once; what
  /// hides from that (a cleaned environment) at the next sweep.
  void worker_ended(pid_t pid, int round, int rank);

  /// Of a worker whose main process has ended: does anything of it live? When the last of it ends, that is a SIGCHLD.
  bool any_left_of(const WorkerKin& worker);
  /// "pid 4712 (sleep 600)", a few of them; empty: nothing is left.
  std::string names_of_rest(const WorkerKin& worker);
  /// To those of them that left its process group (setsid); the group is its owner's.
  void signal_strays_of(const WorkerKin& worker, int signal_number);

  /// No worker runs: kills all that is left, and what comes up as their children become ours, until nothing
  /// is left. At `limit`, those that still are there are told by pid and state. `done` comes once, from the
  /// executor or, when nothing was left, from inside.
  void sweep(Duration limit, Swept done);

  /// Stops listening for children; no callback comes afterwards.
  void stop();

 private:
  void wait_for_child();
  void reap();
  void kill_of_ended_workers();
  void continue_sweep();
  std::vector<pid_t> orphans() const;
  std::vector<pid_t> left_of(const WorkerKin& worker) const;

  boost::asio::signal_set child_signal_;
  boost::asio::steady_timer sweep_limit_;
  std::set<pid_t> spared_;
  std::set<pid_t> workers_;
  std::set<std::pair<std::string, std::string>> ended_;  ///< (round, rank), since the last sweep
  Swept swept_;
  std::function<void()> tell_;
};

}  // namespace muster::agent
