// The rendezvous daemon: accepts agents and operators, opens their connections, and brings each to its job.
// Jobs are made by their first agent and forgotten some time after their end; an id may then be used again.
//
// Runs on the one thread of its io_context and shares nothing with another. Bounded: see DaemonOptions.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "rendezvous/protocol/authentication.hpp"
#include "rendezvous/protocol/tls.hpp"
#include "rendezvous/server/hosted_job.hpp"
#include "rendezvous/server/listen.hpp"
#include "rendezvous/server/once_in_a_while.hpp"
#include "rendezvous/server/session.hpp"

namespace muster::rendezvous {

struct DaemonOptions {
  using s = std::chrono::seconds;

  Endpoint listen;              ///< this address and no other; port 0: the kernel chooses
  std::vector<int> listen_fds;  ///< sockets that listen there already, instead
  std::optional<Token> token;   ///< without it, whoever reaches the port may join, read and change
  std::shared_ptr<Tls> tls;     ///< without it, whoever is on the way may read
  std::shared_ptr<spdlog::logger> log;
  bool standing = true;   ///< it is started again when it ends; agents are told so, and wait for that
  std::string state_dir;  ///< for the journal; empty: none, and agents tell a new daemon what they have

  Duration heartbeat_interval = s(3);
  Duration heartbeat_timeout = s(20);  ///< an agent that is silent for so long is lost
  Duration handshake_timeout = s(10);
  Duration half_open_patience = s(5);  ///< with max_half_open, one that was silent for this long makes room
  Duration journal_retry = Journal::kRetry;  ///< how often a journal that was lost is tried again
  Duration finished_job_kept = s(600);
  std::size_t max_sessions = 20'000;  ///< more are told so and sent away
  std::size_t max_half_open = 8'192;  ///< more wait in the listen queue
  std::size_t max_jobs = 1'000;
};

class Daemon final : private Session::Owner {
 public:
  Daemon(boost::asio::io_context& io, DaemonOptions options);
  ~Daemon() override;

  /// Takes up the jobs of the journal, if there is one, and binds; nothing is accepted before io runs.
  Result<Endpoint> listen();
  /// No new connections, and all that there are end. io then runs out of work.
  void stop();

  using Jobs = std::map<std::string, std::shared_ptr<HostedJob>>;
  const Jobs& jobs() const { return jobs_; }
  const DaemonOptions& options() const { return options_; }
  struct Counters {
    std::uint64_t connections = 0;
    std::uint64_t refusals = 0;
  };
  const Counters& counters() const { return counters_; }
  std::size_t journal_bytes() const { return journal_ ? journal_->bytes() : 0; }
  /// Why the journal that there should be is not written now; null: it is, or there should be none.
  const Error* lost_journal() const { return journal_ && journal_->lost() ? &*journal_->lost() : nullptr; }
  /// There was a job, and every job there was is over.
  bool all_over() const;
  std::size_t sessions() const { return half_open() + established_.size() + ending_.size(); }

 private:
  std::variant<Welcome, Refused> admit(Session& session, const Hello& hello) override;
  void on_agent_message(Session& session, const AgentMessage& message) override;
  OperatorReply on_operator_request(const OperatorRequest& request) override;
  void on_refusal(const Session& session, const Refused& refused) override;
  void on_end(Session& session, const Connection::Ending& ending) override;
  Session::Queue& greeted_sessions() override { return greeted_; }
  Session::Queue& established_sessions() override { return established_; }
  Session::Queue& ending_sessions() override { return ending_; }

  std::optional<Error> recover();
  JobSurroundings surroundings() { return {io_, options_.log, journal_.get()}; }
  boost::asio::awaitable<void> accept_all(TcpAcceptor& acceptor, std::shared_ptr<bool> stopped);
  boost::system::error_code accept_some(TcpAcceptor& acceptor);
  boost::asio::awaitable<void> wait_for_room();
  bool room() const { return half_open() < options_.max_half_open; }
  std::size_t half_open() const { return silent_.size() + greeted_.size(); }
  void take(TcpSocket socket);
  std::variant<std::shared_ptr<HostedJob>, Refused> job_for(const Hello& hello);
  std::shared_ptr<HostedJob> ended_run_of(const Hello& hello) const;
  void forget_old_jobs();
  void log_refusal(const std::string& peer, const std::string& reason);

  boost::asio::io_context& io_;
  DaemonOptions options_;
  Session::Queue silent_;   ///< have not said who they are yet
  Session::Queue greeted_;  ///< have, and are to prove it
  Session::Queue established_;
  Session::Queue ending_;
  std::vector<TcpAcceptor> acceptors_;
  boost::asio::steady_timer room_;
  std::unique_ptr<Journal> journal_;
  Jobs jobs_;
  std::map<std::string, std::shared_ptr<HostedJob>> previous_jobs_;  ///< over, and their id is used again
  OnceInAWhile notices_;
  Counters counters_;
  std::shared_ptr<bool> stopped_ = std::make_shared<bool>(false);  ///< outlives this, for the coroutines
};

}  // namespace muster::rendezvous
