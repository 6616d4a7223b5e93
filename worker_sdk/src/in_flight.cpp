#include "worker_sdk/src/in_flight.hpp"

namespace muster::worker {

std::shared_ptr<Work> InFlight::add(std::string operation) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failed_ || entries_.size() < max_queued_operations; });
  if (failed_) return nullptr;
  if (entries_.empty()) oldest_since_ = std::chrono::steady_clock::now();
  entries_.push_back({std::move(operation), std::make_shared<PendingWork>()});
  changed_.notify_all();
  return entries_.back().work;
}

void InFlight::finish_oldest() {
  std::shared_ptr<PendingWork> work;
  {
    const std::lock_guard lock(mutex_);
    if (entries_.empty()) return;  // it was given up before
    work = std::move(entries_.front().work);
    entries_.pop_front();
    oldest_since_ = std::chrono::steady_clock::now();
    changed_.notify_all();
  }
  work->finish(nullptr);
}

void InFlight::fail_all(const std::exception_ptr& failure) {
  std::deque<Entry> given_up;
  {
    const std::lock_guard lock(mutex_);
    given_up.swap(entries_);
    failed_ = true;
    changed_.notify_all();
  }
  for (auto& entry : given_up) entry.work->finish(failure);
}

std::optional<InFlight::Oldest> InFlight::oldest() const {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return std::nullopt;
  return Oldest{entries_.front().operation, oldest_since_};
}

bool InFlight::wait_for_some() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || !entries_.empty(); });
  return !closed_;
}

void InFlight::wait_until_idle(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return closed_ || entries_.empty(); });
}

void InFlight::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool InFlight::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace muster::worker
