// Work in the background that leaves the processors to others for a part of the time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace muster::worker {

/// Of its time, what somebody in the background may work where `busy` threads of workers share `processors`: all of it
/// where one is left over, else a third.
double background_share(int busy, int processors);

class Pace {
 public:
  /// `share`: more than 0, at most 1.
  explicit Pace(double share);
  /// Between two pieces of work, on the thread that works: blocks as long as the share asks for, at most a second.
  void rest();
  /// From any thread: somebody waits. A rest under way is over, and there are no more.
  void hurry();

 private:
  using Clock = std::chrono::steady_clock;

  double rest_per_work_;
  Clock::time_point resumed_ = Clock::now();  ///< of the working thread alone
  std::mutex mutex_;
  std::condition_variable hurried_;
  bool in_a_hurry_ = false;
};

}  // namespace muster::worker
