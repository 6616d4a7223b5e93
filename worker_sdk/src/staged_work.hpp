// An operation on the host's copies of what lies on a device.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "muster/worker/accelerator.hpp"

namespace muster::worker {

/// Memory of the host in place of a buffer on a device.
class Stage {
 public:
  explicit Stage(const Buffer& device) : device_(device), bytes_(device.bytes()) {}

  Buffer host() { return {bytes_.data(), device_.count, device_.type, Place::host}; }
  /// Throw CollectiveError.
  void copy_out(Accelerator& accelerator);
  void copy_in(Accelerator& accelerator);

 private:
  Buffer device_;
  std::vector<std::byte> bytes_;
};

/// What comes back is on the device once wait() or wait_for() has returned, or done() has said so.
class StagedWork : public Work {
 public:
  /// `result` may be null where nothing comes back; `others` are kept while the operation runs.
  StagedWork(Accelerator& accelerator, std::shared_ptr<Work> inner, std::shared_ptr<Stage> result,
             std::vector<std::shared_ptr<Stage>> others);
  /// The backend may still be writing: the host's copies are never freed then.
  ~StagedWork() override;

  void wait() override;
  bool wait_for(std::chrono::milliseconds timeout) override;
  bool done() const override;

 private:
  void bring_back() const;

  Accelerator& accelerator_;
  const std::shared_ptr<Work> inner_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Stage> result_;  ///< null once it has been brought back
  std::vector<std::shared_ptr<Stage>> kept_;
};

}  // namespace muster::worker
