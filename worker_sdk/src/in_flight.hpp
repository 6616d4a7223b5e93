// The operations that are queued on a device, oldest first, and who waits for them. Thread-safe.
//
// They end in the order in which they were queued. A deadline counts from when an operation became the oldest: before
// that it waited for others, whose deadlines are their own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "worker_sdk/src/lane.hpp"

namespace muster::worker {

class InFlight {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Blocks while `max_queued_operations` are. Nothing, if none may be added any more.
  std::shared_ptr<Work> add(std::string operation);
  /// The oldest has ended well.
  void finish_oldest();
  /// Every one that is queued ends with this, and none can be added any more.
  void fail_all(const std::exception_ptr& failure);

  struct Oldest {
    std::string operation;
    Time since;
  };
  std::optional<Oldest> oldest() const;
  bool idle() const { return !oldest(); }

  /// Blocks until there is an operation, or until closed (then false).
  bool wait_for_some();
  /// Blocks for `time`, or until none is left or it is closed.
  void wait_until_idle(std::chrono::milliseconds time);
  void close();
  bool closed() const;

 private:
  struct Entry {
    std::string operation;
    std::shared_ptr<PendingWork> work;
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  Time oldest_since_{};
  bool failed_ = false;
  bool closed_ = false;
};

}  // namespace muster::worker
