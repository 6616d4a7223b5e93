#include "trainers/data/loader.hpp"

#include <algorithm>

namespace muster::trainers {

Loader::Loader(const Dataset& dataset, SamplerOptions sampler, LoaderOptions options)
    : dataset_(dataset), sampler_(sampler), options_(options) {}

Loader::~Loader() { stop_thread(); }

void Loader::stop_thread() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Loader::start(std::int64_t epoch, std::int64_t position) {
  stop_thread();
  for (auto& step : ready_) spare_.push_back(std::move(step));
  ready_.clear();
  exhausted_ = false;
  failure_ = nullptr;
  sampler_.start(epoch, position);
  if (options_.prefetch > 0) thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

/// False at the epoch's end.
bool Loader::make(StepBatch& step) {
  if (sampler_.epoch_is_over()) return false;
  const auto mine = sampler_.next_of_world(options_.global_batch);
  step.indices.assign(mine.begin(), mine.end());
  step.repeats = sampler_.repeats();
  step.world_samples = sampler_.entries_taken();
  step.position = sampler_.position();
  step.ends_epoch = sampler_.epoch_is_over();

  const std::int64_t world_size = sampler_.options().world_size;
  const auto most = (step.world_samples + world_size - 1) / world_size;
  const auto pieces = (most + options_.piece_size - 1) / options_.piece_size;
  step.pieces.resize(static_cast<std::size_t>(pieces));
  const auto own = static_cast<std::int64_t>(mine.size());
  for (std::int64_t i = 0; i < pieces; ++i) {
    const auto begin = own * i / pieces;
    const auto count = own * (i + 1) / pieces - begin;
    auto& piece = step.pieces[static_cast<std::size_t>(i)];
    dataset_.gather(
        std::span(step.indices).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)),
        piece.batch);
    piece.weight = static_cast<double>(count * world_size) / static_cast<double>(step.world_samples);
  }
  return true;
}

void Loader::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    StepBatch step;
    {
      std::unique_lock lock(mutex_);
      const auto has_room = [this] { return ready_.size() < static_cast<std::size_t>(options_.prefetch); };
      if (!changed_.wait(lock, stop, has_room)) return;
      if (!spare_.empty()) {
        step = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    bool made = false;
    std::exception_ptr failure;
    try {
      made = make(step);
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    failure_ = failure;
    exhausted_ = !made;
    if (made) ready_.push_back(std::move(step));
    changed_.notify_all();
    if (exhausted_) return;
  }
}

StepBatch* Loader::take_ready() {
  std::unique_lock lock(mutex_);
  spare_.push_back(std::move(current_));
  changed_.wait(lock, [this] { return !ready_.empty() || exhausted_; });
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return nullptr;
  }
  current_ = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return &current_;
}

StepBatch* Loader::next() {
  if (options_.prefetch > 0) return take_ready();
  return make(current_) ? &current_ : nullptr;
}

}  // namespace muster::trainers
