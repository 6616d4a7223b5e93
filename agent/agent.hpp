// This node's agent: joins the rendezvous, starts workers, watches them, ends them, and comes back with how
// it all ended. The decisions are the supervisor's (agent/core/supervisor.hpp); here are the deeds.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/channel/worker_channel.hpp"
#include "agent/core/supervisor.hpp"
#include "agent/process/descendants.hpp"
#include "agent/process/guard.hpp"
#include "agent/report/report.hpp"
#include "agent/store_host.hpp"
#include "agent/workers.hpp"
#include "rendezvous/client/link.hpp"

namespace muster::agent {

/// SIGTERM, SIGINT, SIGHUP, SIGQUIT.
extern const std::vector<int> kStopSignals;

struct AgentOptions {
  SupervisorOptions supervisor;  ///< the node's offer and the graces
  WorkersOptions workers;        ///< node, role and local_workers are taken from the offer
  std::function<void(const std::string&)> say = {};  ///< a line for the user, without prefix and newline
  std::function<void()> flush = {};                  ///< until what was said is out, or for a moment
  std::vector<int> stop_signals = kStopSignals;      ///< that end the job; others keep their default action
  pid_t parent = 0;  ///< whose end makes the kernel send SIGTERM; 0: nobody's does
};

struct AgentResult {
  rendezvous::Outcome outcome;
  int stop_signal = 0;                   ///< the signal from outside that ended it, or 0
  std::int64_t stop_signal_unix_ms = 0;  ///< when it came
  Duration stop_grace{};                 ///< that it gave
  int stop_signals = 0;                  ///< how many came
  std::vector<std::string> survivors;    ///< sentences: what of the job outlived SIGKILL
  int exit_code = 0;
  std::vector<WorkerRecord> workers;  ///< of the newest rounds, in order of their start
  int workers_left_out = 0;           ///< of older rounds
  std::vector<RoundTimes> rounds;     ///< the newest
};

/// One for each process: it takes the stop signals (but no SIGHUP that is ignored: nohup), hands SIGUSR1 and SIGUSR2
/// on to workers that mind them, ignores SIGPIPE, and becomes the parent of orphans. All from the constructor on, so that no signal is lost
/// before start(). `io`, run by one thread, must not run any more when the agent is destroyed; link, stores
/// and guard must outlive it.
class Agent {
 public:
  Agent(boost::asio::io_context& io, AgentOptions options, rendezvous::Link& link, StoreHost& stores,
        Guard& guard);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// `done` comes once, from `io`. Nothing of the job is alive by then, unless the exit code is
  /// kUncleanExitCode.
  void start(std::function<void(AgentResult)> done);

  /// For status pages: what it waits for.
  std::string reason() const { return supervisor_.reason(); }
  Vitals vitals() const { return supervisor_.vitals(std::chrono::steady_clock::now()); }
  /// A process of ours that is no part of the job (a rendezvous daemon): it is left alone.
  void spare(pid_t pid) { descendants_.spare(pid); }

 private:
  void take(Event event);
  void take_of_workers(Event event);
  void judge_end(const Event& event);
  void arm_timer();
  std::vector<LedRound::Worker> workers_of(int round) const;
  std::optional<int> local_rank_of(pid_t pid, int first_rank) const;
  void take_signals(const std::vector<int>& stop_signals);
  void wait_for_signal();
  void wait_for_warning();
  void watch_guard();
  void replace_guard();

  void carry_out(const SendToDaemon& effect);
  void carry_out(const StartWorkers& effect);
  void carry_out(const SignalWorker& effect);
  void carry_out(const PassOnSignal& effect);
  void carry_out(const OpenStore& effect);
  void carry_out(const CloseStore& effect);
  void carry_out(const DescribeWorker& effect);
  void carry_out(const SweepGroup& effect);
  void carry_out(const AskToSave& effect);
  void carry_out(const InjectFault& effect);
  void carry_out(const Say& effect);
  void carry_out(const Finish& effect);

  boost::asio::io_context& io_;
  std::function<void(const std::string&)> say_;
  std::function<void()> flush_;
  rendezvous::Link& link_;
  StoreHost& stores_;
  Guard& guard_;
  boost::asio::signal_set stop_signals_;
  boost::asio::signal_set warning_signals_;
  boost::asio::posix::stream_descriptor guard_channel_;  ///< another descriptor for the guard's
  boost::asio::steady_timer timer_;
  Descendants descendants_;
  Supervisor supervisor_;
  bool virtual_local_rank_;
  pid_t parent_;
  Workers workers_;
  std::unique_ptr<WorkerChannel>
      channel_;  ///< none: its socket could not be made, and workers are only signalled

  std::deque<Event> events_;  ///< as many as one effect brings about: a few for each worker
  bool stepping_ = false;
  int guards_lost_ = 0;
  std::int64_t stop_signal_unix_ms_ = 0;  ///< of the first one
  std::optional<Instant> armed_for_;
  std::vector<int> open_stores_;  ///< at most two
  std::function<void(AgentResult)> done_;
};

}  // namespace muster::agent
