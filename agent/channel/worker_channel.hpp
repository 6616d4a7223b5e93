// The agent's end of the channel to those workers that speak with it (grammar: base/worker_lines.hpp). One listening
// socket serves all workers of all rounds; it has an abstract name, so nothing of it is left on any disk.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/core/events.hpp"
#include "base/worker_lines.hpp"

namespace muster::agent {

/// Used and destroyed from one thread, the executor's. Emits WorkerListens, WorkerProgress, WorkerSafe, WorkerDone
/// and WorkerDeaf, all of the running round: whoever names another round, or comes from another user, is not let in.
class WorkerChannel {
 public:
  using Emit = std::function<void(Event)>;
  using LocalRankOf = std::function<std::optional<int>(pid_t)>;

  static Result<std::unique_ptr<WorkerChannel>> open(boost::asio::any_io_executor executor, Emit emit);
  ~WorkerChannel();

  /// What workers find in MUSTER_CHANNEL: "@muster-4711-51c0ffee".
  const std::string& name() const { return name_; }

  /// Before the round's workers start. Those of an earlier round are heard no more.
  /// `who`: the local rank of a process, where workers are not told their own.
  void start_round(int round, int local_workers, LocalRankOf who = {});

  /// Nothing happens if that worker is gone by now.
  void ask_to_save(int local_rank, Duration grace);

  /// Emits what that worker has said and nobody has read yet. An end of a process and what it wrote before come by two
  /// ways, and the end may be seen first.
  void hear_last_words(int local_rank);

 private:
  class Session;
  using Acceptor = boost::asio::local::stream_protocol::acceptor;

  WorkerChannel(Acceptor acceptor, std::string name, Emit emit);
  void accept();
  bool let_in();
  void accept_later();
  bool take(const std::shared_ptr<Session>& session, const WorkerLine& line);
  void ended(const std::shared_ptr<Session>& session);
  void greet(const std::shared_ptr<Session>& session, int local_rank);

  Acceptor acceptor_;
  boost::asio::steady_timer pause_;
  std::shared_ptr<void> life_ = std::make_shared<int>();  ///< by which a late handler knows that this is gone
  std::string name_;
  Emit emit_;
  int round_ = 0;
  int local_workers_ = 0;
  LocalRankOf who_;
  std::set<std::shared_ptr<Session>> sessions_;
  std::map<int, std::shared_ptr<Session>> by_local_rank_;  ///< the newest of each that said hello
};

}  // namespace muster::agent
