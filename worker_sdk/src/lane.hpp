// A thread that runs operations one after the other, in the order in which they were queued.
#pragma once

#include <signal.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "muster/worker/process_group.hpp"

namespace muster::worker {

/// Done when somebody says so.
class PendingWork : public Work {
 public:
  void wait() override;
  bool wait_for(std::chrono::milliseconds timeout) override;
  bool done() const override;
  /// Once. A null pointer: it went well.
  void finish(std::exception_ptr failure);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr failure_;
};

class Lane {
 public:
  Lane();
  /// Runs what is queued, then stops.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Blocks while `max_queued_operations` wait. `task` must not throw.
  void push(std::function<void()> task);
  bool idle() const;

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

/// While it lives, threads that the caller starts receive no signals: those belong to the program's own
/// threads, and a broken connection must be an error, not a SIGPIPE.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace muster::worker
