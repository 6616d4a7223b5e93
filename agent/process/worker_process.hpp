// A running worker: its exit as an event, its signals.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>

#include "base/error.hpp"
#include "base/exit_cause.hpp"

namespace muster::agent {

/// Owns the child `pid`, which is the leader of its process group. Used from one thread, the executor's.
/// Destroying it while the process runs kills its group.
class WorkerProcess {
 public:
  using Ended = std::function<void(ExitCause)>;
  using MayLinger = std::function<bool()>;

  static Result<std::unique_ptr<WorkerProcess>> adopt(boost::asio::any_io_executor executor, pid_t pid);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }
  /// Its main process has ended, whether that was looked at yet or not.
  bool has_ended();

  /// Once. Ends of several workers are told in the order in which they happened. What is left of the process
  /// group has been killed when `ended` is called: first that, then the wait, so that the group's number
  /// cannot have been taken by somebody else.
  ///
  /// `may_linger` is asked when the main process has ended: true leaves the rest of its group alive and its end untold
  /// until end_rest().
  void on_end(Ended ended, MayLinger may_linger = {});

  /// The main process has ended and the rest of its group lives on.
  bool lingers() const { return lingers_; }
  void end_rest();

  /// To be called on each SIGCHLD: an ended process that a debugger still holds cannot be waited for before
  /// the debugger lets it go.
  void child_changed() { collect(); }

  /// A process that has ended already is no error: its end is on its way as an event.
  Result<void> signal_main(int signal_number);
  Result<void> signal_group(int signal_number);

 private:
  WorkerProcess(boost::asio::any_io_executor executor, pid_t pid, int pidfd);
  void main_process_ended();
  void end_group();
  void collect();

  pid_t pid_;
  bool running_ = true;    ///< not reaped
  bool end_seen_ = false;  ///< no thread of it runs any more
  bool lingers_ = false;
  Ended ended_;
  MayLinger may_linger_;
  boost::asio::posix::stream_descriptor pidfd_;
};

}  // namespace muster::agent
