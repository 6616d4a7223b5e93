// What an agent and the rendezvous daemon say to each other, as plain values. The codec (codec.hpp) turns
// them into bytes for the network; on a single node they pass in-process, unchanged. All strings are UTF-8
// for people unless said otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_cause.hpp"
#include "base/time.hpp"

namespace muster::rendezvous {

/// Names a node for the whole life of the job, over reconnects and relaunches. Given by the user or derived.
using NodeId = std::string;

/// What a node brings to the next round.
struct NodeOffer {
  NodeId node;
  std::string host;              ///< short host name, for people only; nothing ever resolves it
  std::string address;           ///< numeric address that the other nodes' workers can connect to
  std::uint16_t store_port = 0;  ///< this node's worker store of the next round listens there already
  int local_workers = 1;         ///< at least 1
  std::string role = "default";
  std::optional<int> preferred_group_rank;  ///< a wish (--node-rank), not a claim
  bool hosts_endpoint = false;              ///< one of its own addresses is the rendezvous endpoint's
  std::string incarnation;  ///< differs for each start of this node's agent; the same over reconnects

  bool operator==(const NodeOffer&) const = default;
};

/// One worker's end that was not a success, as every node's report shows it.
struct WorkerFailure {
  NodeId node;
  std::string host;
  int rank = -1;
  int local_rank = -1;
  int pid = 0;
  int round = 0;
  std::int64_t unix_time_ms = 0;
  std::int64_t lived_ms = 0;  ///< from exec to its end
  bool initialised = false;   ///< it had joined its group (opened the worker store) or reported progress
  bool permanent = false;     ///< it said itself that trying again cannot help (its error file)
  ExitCause cause;
  std::string message;                  ///< first line of what its error file says; may be empty
  std::vector<std::string> last_lines;  ///< of its stderr, oldest first; at most 30
  std::string log_path;                 ///< on `host`; may be empty

  bool operator==(const WorkerFailure&) const = default;
};

// ---- from an agent -------------------------------------------------------------------------------------

/// "I am here for the next round; none of my workers of an earlier round is alive."
struct Join {
  NodeOffer offer;
  int last_round = 0;     ///< the newest round this agent was in; a daemon without memory counts on from it
  int restart_count = 0;  ///< of that round, or with its end if that was told
  std::string why_ended = {};  ///< that round, as StopWorkers said; empty: nothing was heard of its end
  bool operator==(const Join&) const = default;
};

/// First message after a broken connection, from a node that has a round: what it is and has. Nothing
/// restarts because of it. The agent then repeats what it last said of this round (WorkerFailed, WorkersSafe,
/// WorkersSucceeded, Leave), since that may have been lost. A node without a round sends Join again instead.
struct Resume {
  NodeOffer offer;
  int round = 0;
  int group_rank = 0;
  int group_world_size = 1;
  int first_rank = 0;
  int restart_count = 0;
  bool workers_alive = false;  ///< all, as far as is known: none has failed, and none was to leave
  NodeId next_node = {};       ///< as the Assignment named it
  bool operator==(const Resume&) const = default;
};

/// One of the round's workers here ended without success. The agent stops its other workers by itself.
struct WorkerFailed {
  int round = 0;
  WorkerFailure failure;
  Duration age{};  ///< since its end, by this agent's clock when it says so, or says so again
  bool operator==(const WorkerFailed&) const = default;
};

/// Answer to Drain: all workers here have saved (or there was nothing to ask); `step` is -1 if they do not
/// say.
struct WorkersSafe {
  int round = 0;
  std::int64_t step = -1;
  bool operator==(const WorkersSafe&) const = default;
};

/// None of the round's workers is alive here any more.
struct WorkersStopped {
  int round = 0;
  bool operator==(const WorkersStopped&) const = default;
};

/// All of the round's workers here exited with 0.
struct WorkersSucceeded {
  int round = 0;
  bool operator==(const WorkersSucceeded&) const = default;
};

struct Progress {
  int round = 0;
  std::int64_t step = -1;
  bool operator==(const Progress&) const = default;
};

/// This node goes (signal, drain by an operator). The job goes on without it if it can.
struct Leave {
  std::string reason;
  int signal_number = 0;  ///< that this node got; 0: none
  bool operator==(const Leave&) const = default;
};

struct Heartbeat {
  bool operator==(const Heartbeat&) const = default;
};

using AgentMessage = std::variant<Join, Resume, WorkerFailed, WorkersSafe, WorkersStopped, WorkersSucceeded,
                                  Progress, Leave, Heartbeat>;

// ---- from the daemon -----------------------------------------------------------------------------------

/// In, but there is no round yet (or this node is a spare). Sent when the reason changes.
struct Waiting {
  std::string reason;
  bool operator==(const Waiting&) const = default;
};

/// A round was formed: what this node needs to start its workers, and no more.
struct Assignment {
  int round = 0;  ///< counts up for the whole job, from 1
  int group_rank = 0;
  int group_world_size = 1;
  int first_rank = 0;  ///< this node's workers are first_rank .. first_rank + local_workers - 1
  int world_size = 1;
  int first_role_rank = 0;
  int role_world_size = 1;
  int restart_count = 0;  ///< restarts after failures so far, job-wide, the same on all nodes
  int max_restarts = 0;
  std::string master_addr;
  std::uint16_t master_port = 0;
  std::string reason;  ///< why this round exists: "all 2 nodes are here", "restart 1 of 3 after rank 1 ..."
  Duration forming_took{};
  /// The node of the next group rank, after the last that of the first; empty: this one alone. By it a daemon that has
  /// lost its memory learns who is missing.
  NodeId next_node = {};

  bool operator==(const Assignment&) const = default;
};

/// The round will end: ask the workers to save, answer WorkersSafe within `grace`. StopWorkers follows.
struct Drain {
  int round = 0;
  Duration grace{};
  std::string reason;
  bool operator==(const Drain&) const = default;
};

/// Stop the round's workers, answer WorkersStopped, then Join for the next round.
struct StopWorkers {
  int round = 0;
  /// Empty: a question to a node that has joined since. A daemon without memory has heard from another that this node
  /// was in that round. It says its place and what it said of the round again, and joins again; one that was not in the
  /// round just joins again.
  std::string reason;
  int restart_count = 0;       ///< with the one that this end costs, if it costs one
  bool cause_is_known = true;  ///< else the reason says that it is not yet
  bool operator==(const StopWorkers&) const = default;
};

enum class OutcomeKind : std::uint8_t {
  succeeded,
  failed,
  stopped,
  preempted,
  rendezvous_failed,
  node_lost  ///< too few are left, and no restart for waiting for another
};

/// How the whole job ended. The same on every node.
struct Outcome {
  OutcomeKind kind = OutcomeKind::succeeded;
  std::string reason;
  std::optional<WorkerFailure> first_failure;  ///< of the last round
  std::vector<std::string> restarts;  ///< one line for each restart that was used: "rank 5 (SIGKILL)"
  int max_restarts = 0;
  int stop_signal = 0;  ///< preempted: that the node got which left; 0: none
  bool operator==(const Outcome&) const = default;
};

/// The job is over: stop what still runs, report, leave. Whoever serves the worker store leaves last.
struct JobEnded {
  Outcome outcome;
  bool operator==(const JobEnded&) const = default;
};

enum class RefusalCode : std::uint8_t {
  bad_magic = 1,
  wrong_version,
  wrong_job,
  not_authenticated,
  duplicate_node,
  conflicting_claim,
  incompatible_policy,
  cooling_down,
  job_over,
  limit_reached,
  malformed
};

struct Refused {
  RefusalCode code = RefusalCode::malformed;
  std::string reason;
  bool operator==(const Refused&) const = default;
};

/// A fault that an operator rehearses (musterctl chaos): this signal to the worker of that rank, or to the agent itself.
struct Inject {
  std::optional<int> rank;  ///< of this node's; none: the agent
  int signal_number = 0;
  bool operator==(const Inject&) const = default;
};

using DaemonMessage = std::variant<Waiting, Assignment, Drain, StopWorkers, JobEnded, Refused, Inject>;

}  // namespace muster::rendezvous
