// A process group whose ranks are threads of the test: synchronous, sums in the order of the ranks.
#pragma once

#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "muster/worker/process_group.hpp"

namespace muster::trainers {

class ThreadWorld;

struct DoneWork final : worker::Work {
  void wait() override {}
  bool wait_for(std::chrono::milliseconds) override { return true; }
  bool done() const override { return true; }
};

/// What the trainers use: broadcast, all_reduce (sum, average), barrier.
class ThreadGroup final : public worker::ProcessGroup {
 public:
  ThreadGroup(ThreadWorld& world, int rank) : world_(world), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override;
  std::string backend() const override { return "threads"; }
  std::shared_ptr<worker::Work> broadcast(worker::Buffer buffer, int root) override;
  std::shared_ptr<worker::Work> all_reduce(worker::Buffer buffer, worker::ReduceOp op) override;
  std::shared_ptr<worker::Work> barrier() override { return broadcast({}, 0); }
  std::shared_ptr<worker::Work> reduce_scatter(worker::Buffer, worker::Buffer, worker::ReduceOp) override {
    throw std::logic_error("not in this fake");
  }
  std::shared_ptr<worker::Work> all_gather(worker::Buffer, worker::Buffer) override {
    throw std::logic_error("not in this fake");
  }
  std::shared_ptr<worker::Work> all_gather_uneven(worker::Buffer, worker::Buffer,
                                                  std::span<const std::size_t>) override {
    throw std::logic_error("not in this fake");
  }
  std::shared_ptr<worker::Work> send(worker::Buffer, int) override {
    throw std::logic_error("not in this fake");
  }
  std::shared_ptr<worker::Work> receive(worker::Buffer, int) override {
    throw std::logic_error("not in this fake");
  }

  void abort() override { throw std::logic_error("not in this fake"); }

  std::vector<std::string> calls;  ///< "all_reduce 12", in the order they were made

 private:
  ThreadWorld& world_;
  int rank_;
};

class ThreadWorld {
 public:
  explicit ThreadWorld(int size) : buffers(static_cast<std::size_t>(size)) {}

  /// Runs `body` once for each rank, each on its own thread; rethrows the first exception by rank.
  void run(const std::function<void(ThreadGroup&)>& body) {
    std::vector<std::exception_ptr> failures(buffers.size());
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < size(); ++rank) {
        threads.emplace_back([this, rank, &body, &failures] {
          ThreadGroup group(*this, rank);
          try {
            body(group);
          } catch (const std::exception&) {
            failures[static_cast<std::size_t>(rank)] = std::current_exception();
          }
        });
      }
    }
    for (auto& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

  int size() const { return static_cast<int>(buffers.size()); }

  /// Returns once every rank has called it.
  void meet() {
    std::unique_lock lock(mutex_);
    const auto meeting = meetings_;
    if (++arrived_ == size()) {
      arrived_ = 0;
      ++meetings_;
      all_here_.notify_all();
      return;
    }
    all_here_.wait(lock, [&] { return meetings_ != meeting; });
  }

  std::vector<worker::Buffer> buffers;  ///< by rank, between two meetings

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int arrived_ = 0;
  long meetings_ = 0;
};

inline int ThreadGroup::size() const { return world_.size(); }

inline std::shared_ptr<worker::Work> ThreadGroup::broadcast(worker::Buffer buffer, int root) {
  calls.push_back("broadcast " + std::to_string(buffer.count));
  world_.buffers[static_cast<std::size_t>(rank_)] = buffer;
  world_.meet();
  const auto& from = world_.buffers[static_cast<std::size_t>(root)];
  if (rank_ != root && buffer.bytes() > 0) std::memcpy(buffer.data, from.data, buffer.bytes());
  world_.meet();
  return std::make_shared<DoneWork>();
}

template <class T>
std::vector<T> sum_over_ranks(const std::vector<worker::Buffer>& buffers) {
  std::vector<T> sum(buffers.front().count, T{});
  for (const auto& buffer : buffers) {
    const auto* values = static_cast<const T*>(buffer.data);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

template <class T>
void all_reduce_in_threads(ThreadWorld& world, worker::Buffer buffer, worker::ReduceOp op) {
  auto sum = sum_over_ranks<T>(world.buffers);
  if (op == worker::ReduceOp::average) {
    for (auto& value : sum) value /= static_cast<T>(world.size());
  }
  world.meet();
  std::memcpy(buffer.data, sum.data(), buffer.bytes());
}

inline std::shared_ptr<worker::Work> ThreadGroup::all_reduce(worker::Buffer buffer, worker::ReduceOp op) {
  calls.push_back("all_reduce " + std::to_string(buffer.count));
  world_.buffers[static_cast<std::size_t>(rank_)] = buffer;
  world_.meet();
  switch (buffer.type) {
    case worker::ElementType::f32:
      all_reduce_in_threads<float>(world_, buffer, op);
      break;
    case worker::ElementType::f64:
      all_reduce_in_threads<double>(world_, buffer, op);
      break;
    case worker::ElementType::i64:
      all_reduce_in_threads<std::int64_t>(world_, buffer, op);
      break;
    default:
      throw std::logic_error("not in this fake");
  }
  world_.meet();
  return std::make_shared<DoneWork>();
}

}  // namespace muster::trainers
