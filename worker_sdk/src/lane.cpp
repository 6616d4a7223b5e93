#include "worker_sdk/src/lane.hpp"

namespace muster::worker {

void PendingWork::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_; });
  if (failure_) std::rethrow_exception(failure_);
}

bool PendingWork::wait_for(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [this] { return done_; })) return false;
  if (failure_) std::rethrow_exception(failure_);
  return true;
}

bool PendingWork::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

void PendingWork::finish(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
  done_ = true;
  changed_.notify_all();
}

Lane::Lane() {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

Lane::~Lane() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Lane::push(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.size() < max_queued_operations; });
  queue_.push_back(std::move(task));
  changed_.notify_all();
}

bool Lane::idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !busy_;
}

void Lane::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    auto task = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    changed_.notify_all();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    busy_ = false;
  }
}

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace muster::worker
