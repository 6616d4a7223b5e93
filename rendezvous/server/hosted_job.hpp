// One job on the daemon: the core that decides, the connections of its agents, its timer, and what happened
// to it.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/core/job.hpp"
#include "rendezvous/protocol/channel_messages.hpp"
#include "rendezvous/server/session.hpp"

namespace muster::rendezvous {

struct JobEvent {
  std::int64_t unix_time_ms = 0;
  std::string text;
};

class HostedJob : public std::enable_shared_from_this<HostedJob> {
 public:
  static constexpr std::size_t kMaxEvents = 1000;  ///< the oldest are forgotten

  /// `policy` is what the first agent brought; every other agent is held against it.
  HostedJob(boost::asio::io_context& io, std::shared_ptr<spdlog::logger> log, Job job,
            std::vector<PolicyValue> policy, std::uint64_t incarnation);

  /// Whether an agent with this hello may come in, and if so, makes way for it: an old connection of the same
  /// agent, or a silent one of the same node, is ended. `old_after`: how long it must have been silent for
  /// that.
  std::optional<Refused> refusal(const Hello& hello, Duration old_after);
  void attach(const std::shared_ptr<Session>& session);
  void take(Session& session, const AgentMessage& message);
  void detach(Session& session, const Connection::Ending& ending);

  /// An operator's wish; nothing if the job is over.
  std::optional<Answer> operate(const Event& event);

  /// Has had an agent of this incarnation: it belongs to this run of the job and not to the next under its
  /// name.
  bool knows(const NodeId& node, const std::string& incarnation) const;
  bool over() const { return job_.over(); }
  std::optional<Instant> over_since() const { return over_since_; }
  std::uint64_t incarnation() const { return incarnation_; }
  const Job& job() const { return job_; }
  const std::vector<PolicyValue>& policy() const { return policy_; }
  const std::deque<JobEvent>& events() const { return events_; }
  std::int64_t created_unix_ms() const { return created_unix_ms_; }
  std::size_t connected() const { return sessions_.size(); }
  const Session* session_of(const NodeId& node) const;
  static Instant now() { return std::chrono::steady_clock::now(); }

 private:
  std::optional<Answer> step(const Event& event);
  void deliver(const NodeId& node, const DaemonMessage& message);
  void note(std::string text);
  void note_round(const DaemonMessage& message);
  void arm();

  std::shared_ptr<spdlog::logger> log_;
  boost::asio::steady_timer timer_;
  Job job_;
  std::vector<PolicyValue> policy_;
  std::uint64_t incarnation_;
  std::int64_t created_unix_ms_;
  std::unordered_map<NodeId, std::shared_ptr<Session>> sessions_;
  std::unordered_map<NodeId, std::string> known_;  ///< the last incarnation of each node
  std::deque<JobEvent> events_;
  std::string last_round_note_;
  std::optional<Instant> armed_for_;
  std::optional<Instant> over_since_;
  std::optional<Outcome> outcome_;
};

}  // namespace muster::rendezvous
