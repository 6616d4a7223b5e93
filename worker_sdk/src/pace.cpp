#include "worker_sdk/src/pace.hpp"

#include <algorithm>

namespace muster::worker {
namespace {

using namespace std::chrono_literals;

/// A disk that stood still for a minute is no reason to do the same.
constexpr auto longest_rest = 1s;
constexpr double share_of_busy_processors = 1.0 / 3;

}  // namespace

double background_share(int busy, int processors) { return busy < processors ? 1 : share_of_busy_processors; }

Pace::Pace(double share) : rest_per_work_(1 / share - 1) {}

void Pace::rest() {
  const auto worked = Clock::now() - resumed_;
  // As floating point up to here: of a tiny share it is more than a clock can count.
  const auto wanted = std::min<std::chrono::duration<double>>(worked * rest_per_work_, longest_rest);
  if (wanted.count() > 0) {
    std::unique_lock lock(mutex_);
    hurried_.wait_for(lock, wanted, [this] { return in_a_hurry_; });
  }
  resumed_ = Clock::now();
}

void Pace::hurry() {
  const std::lock_guard lock(mutex_);
  in_a_hurry_ = true;
  hurried_.notify_all();
}

}  // namespace muster::worker
