// The worker processes of the running round with their output, for the agent: starts all in one go, tells
// their ends as events, keeps a record of each.
#pragma once

#include <sys/resource.h>

#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/events.hpp"
#include "agent/logs/round_logs.hpp"
#include "agent/logs/worker_log.hpp"
#include "agent/process/descendants.hpp"
#include "agent/process/guard.hpp"
#include "agent/process/terminal_loan.hpp"
#include "agent/process/worker_process.hpp"
#include "agent/report/oom_evidence.hpp"
#include "agent/report/report.hpp"
#include "base/unique_fd.hpp"

namespace muster::agent {

/// Where one worker runs.
struct WorkerSpot {
  std::vector<int> cpus;                       ///< that it is bound to; empty: as this process
  std::optional<std::string> visible_devices;  ///< its CUDA_VISIBLE_DEVICES; none: as inherited
};

struct WorkersOptions {
  std::string run_id;
  rendezvous::NodeId node;
  std::string host;  ///< this host's name, for people
  std::string role = "default";
  int local_workers = 1;
  std::string executable;                                ///< a path; no search
  std::vector<std::string> arguments;                    ///< without argv[0]
  std::vector<std::string> environment;                  ///< "NAME=value", what each worker inherits
  std::filesystem::path log_folder;                      ///< of this job on this node; empty: no files
  std::optional<::rlimit> descriptor_limit = {};         ///< the workers'; none: as here
  bool agent_store = true;                               ///< else rank 0 serves the worker store
  int usable_cpus = 1;                                   ///< of this node, for OMP_NUM_THREADS
  std::vector<WorkerSpot> spots = {};                    ///< by local rank; may be empty
  bool virtual_local_rank = false;                       ///< all are told LOCAL_RANK 0
  Duration last_output_limit = std::chrono::seconds(1);  ///< if a stranger holds an ended worker's pipe open
  OutputOptions output = {};                             ///< what of theirs goes where
};

/// Used from one thread, the executor's, which must not run any more when this is destroyed. Emits
/// WorkerStarted, WorkerEnded, WorkerOutput; and StopSignal for a Ctrl-C that only the worker could hear.
class Workers {
 public:
  using Emit = std::function<void(Event)>;
  /// Somebody has opened the worker store of the running round, as far as this node can tell.
  using StoreUsed = std::function<bool()>;

  Workers(boost::asio::any_io_executor executor, WorkersOptions options, Guard& guard,
          Descendants& descendants, StoreUsed store_used, Emit emit);

  /// `channel`: what MUSTER_CHANNEL says to them; empty: it is not set.
  void start(const rendezvous::Assignment& assignment, const std::string& channel);
  /// A failed kill(2) comes back: there is nothing that the agent can do but say it.
  Result<void> signal(const SignalWorker& wanted);
  /// As if it came from outside: to the main process, and remembered nowhere.
  Result<void> inject(int local_rank, int signal_number);
  /// To those that mind it.
  SignalPassedOn pass_on(int signal_number);
  std::string state_of(int local_rank) const;
  /// The process groups of those that run.
  std::vector<pid_t> groups() const;

  /// How the supervisor saw the end.
  void judge(int local_rank, const ExitCause& cause);
  const std::vector<WorkerRecord>& records() const { return records_; }
  int records_left_out() const { return records_left_out_; }

 private:
  struct Slot {
    int local_rank = 0;
    std::size_t record = 0;
    std::filesystem::path folder;
    std::unique_ptr<WorkerLog> log;
    std::unique_ptr<WorkerProcess> process;
    bool killed_by_us = false;
    int stop_signal = 0;  ///< the last one that it had from us, but for SIGKILL
    bool whole_group_has_it = false;
    bool signalled = false;
    bool ended_unasked = false;      ///< it had ended before the first signal was sent to it
    std::int64_t main_ended_ms = 0;  ///< once its main process ended
  };

  void forget_old_rounds();
  Result<void> open_round_logs();
  Slot new_slot(int local_rank);
  Result<void> start_one(Slot& slot);
  void child_changed();
  void watch(Slot& slot);
  bool rest_may_linger(Slot& slot);
  void kill_rest(Slot& slot);
  WorkerKin kin_of(const Slot& slot) const;
  WorkerSpot spot_of(const Slot& slot) const;
  void ended(Slot& slot, ExitCause cause);
  void output_taken(const Slot& slot);
  void failed_to_start(const Slot& slot, const Error& error);
  std::vector<std::string> environment_of(const Slot& slot) const;

  boost::asio::any_io_executor executor_;
  WorkersOptions options_;
  Guard& guard_;
  Descendants& descendants_;
  StoreUsed store_used_;
  Emit emit_;
  OomEvidence oom_;
  TerminalLoan terminal_;  ///< a single worker may have it
  UniqueFd no_input_;      ///< /dev/null

  rendezvous::Assignment assignment_;
  std::string channel_;
  std::unique_ptr<RoundLogs> logs_;
  std::vector<Slot> slots_;
  std::vector<WorkerRecord> records_;
  int records_left_out_ = 0;
};

/// The records of older rounds go when there are more, so that a job that restarts for weeks does not grow.
inline constexpr std::size_t kMaxOldRecords = 400;

}  // namespace muster::agent
