// One job on the daemon: the core that decides, the connections of its agents, its timer, its place in the
// journal.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rendezvous/core/job.hpp"
#include "rendezvous/protocol/channel_messages.hpp"
#include "rendezvous/server/job_history.hpp"
#include "rendezvous/server/journal.hpp"
#include "rendezvous/server/session.hpp"

namespace muster::rendezvous {

/// What all jobs of a daemon share. `journal` may be null.
struct JobSurroundings {
  boost::asio::io_context& io;
  std::shared_ptr<spdlog::logger> log;
  Journal* journal = nullptr;
};

class HostedJob : public std::enable_shared_from_this<HostedJob> {
 public:
  HostedJob(const JobSurroundings& around, Job job, JobIdentity identity, JobHistory history = {});

  /// A job from the journal: every connection of it is gone, and it was the daemon that was away.
  void come_back();

  /// An agent comes under the name of a node whose agent was another process, and that one is gone or has been
  /// silent for `old_after`: the node is lost to this run. Asked before the newcomer is let in, so that a run
  /// which ends of it does not take the newcomer along.
  void make_way(const Hello& hello, Duration old_after);
  /// Whether an agent with this hello may come in; an old connection of the same agent is ended for it.
  std::optional<Refused> refusal(const Hello& hello);
  void attach(const std::shared_ptr<Session>& session);
  void take(Session& session, const AgentMessage& message);
  void detach(Session& session, const Connection::Ending& ending);

  /// An operator's wish; nothing if the job is over.
  std::optional<Answer> operate(const Event& event);

  /// Sent this agent away, since another one of its node was here, and that one stayed to the job's end: it has no
  /// part in the job, and none in a new run of it.
  bool turned_away(const Hello& hello) const;

  /// Has had an agent of this incarnation: it belongs to this run of the job and not to the next under its
  /// name.
  bool knows(const NodeId& node, const std::string& incarnation) const;

  /// An agent that was in this run, which is over, and of whose node this daemon has never heard: it had lost its memory,
  /// and the others ended the run before this one was back. It is to hear how. False if another agent was that node.
  bool welcome_late(const Hello& hello);

  bool over() const { return job_.over(); }
  std::optional<Instant> over_since() const { return over_since_; }
  const Job& job() const { return job_; }
  const JobIdentity& identity() const { return identity_; }
  const JobHistory& history() const { return history_; }
  SnapshotRecord snapshot() const;
  std::size_t connected() const { return sessions_.size(); }
  const Session* session_of(const NodeId& node) const;
  static Instant now() { return std::chrono::steady_clock::now(); }

 private:
  std::optional<Answer> step(const Event& event);
  void carry_out(std::vector<Effect> effects);
  void note_end(const Outcome& outcome);
  void deliver(const NodeId& node, const DaemonMessage& message);
  void note_rehearsal(const NodeId& node, const DaemonMessage& message);
  std::string rehearsed_end_of(const NodeId& node) const;
  void name_store_clients(Session& session, const Assignment& assignment) const;
  void log_line(const std::optional<std::string>& line);
  void arm();

  JobSurroundings around_;
  boost::asio::steady_timer timer_;
  Job job_;
  JobIdentity identity_;
  JobHistory history_;
  std::unordered_map<NodeId, std::shared_ptr<Session>> sessions_;
  std::unordered_set<NodeId> latecomers_;
  std::unordered_map<NodeId, std::string> turned_away_;  ///< the newest incarnation, of nodes that are here
  /// A fault that an operator has sent to a launcher: its connection may end of it.
  struct Rehearsal {
    std::string incarnation;
    int signal_number = 0;
    Instant at{};
  };
  std::unordered_map<NodeId, Rehearsal> rehearsals_;  ///< the newest of each node
  std::deque<Effect> outbox_;  ///< emptied at once, or as soon as what is in front of it is out
  bool delivering_ = false;
  std::optional<Instant> armed_for_;
  std::optional<Instant> over_since_;
};

}  // namespace muster::rendezvous
