#include "worker_sdk/src/staged_work.hpp"

namespace muster::worker {

void Stage::copy_out(Accelerator& accelerator) {
  if (bytes_.empty()) return;
  if (const auto fault = accelerator.copy_out(bytes_.data(), device_.data, bytes_.size()))
    throw CollectiveError(*fault);
}

void Stage::copy_in(Accelerator& accelerator) {
  if (bytes_.empty()) return;
  if (const auto fault = accelerator.copy_in(device_.data, bytes_.data(), bytes_.size()))
    throw CollectiveError(*fault);
}

StagedWork::StagedWork(Accelerator& accelerator, std::shared_ptr<Work> inner, std::shared_ptr<Stage> result,
                       std::vector<std::shared_ptr<Stage>> others)
    : accelerator_(accelerator),
      inner_(std::move(inner)),
      result_(std::move(result)),
      kept_(std::move(others)) {
  if (result_) kept_.push_back(result_);
}

StagedWork::~StagedWork() {
  if (inner_->done()) return;
  static auto& forever = *new std::vector<std::shared_ptr<Stage>>;  // never destroyed: that is the point
  static std::mutex forever_mutex;
  const std::lock_guard lock(forever_mutex);
  for (auto& stage : kept_) forever.push_back(std::move(stage));
}

void StagedWork::wait() {
  inner_->wait();
  bring_back();
}

bool StagedWork::wait_for(std::chrono::milliseconds timeout) {
  if (!inner_->wait_for(timeout)) return false;
  bring_back();
  return true;
}

/// A failed operation is done too; wait() throws then.
bool StagedWork::done() const {
  if (!inner_->done()) return false;
  try {
    inner_->wait();
    bring_back();
  } catch (const CollectiveError&) {
    return true;
  }
  return true;
}

void StagedWork::bring_back() const {
  const std::lock_guard lock(mutex_);
  if (!result_) return;
  result_->copy_in(accelerator_);
  result_ = nullptr;
}

}  // namespace muster::worker
