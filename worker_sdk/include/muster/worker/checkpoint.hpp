// Checkpoints on disk: atomic (a half-written one is never loaded), checksummed, several kept.
//
// One checkpoint is a folder `step-<12 digits>` with an `index.json` and one safetensors file for each part.
// It is written under a temporary name, flushed to disk, and renamed into place: it is there whole or not at
// all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "muster/worker/element_type.hpp"

namespace muster::worker {

/// A named tensor in the caller's memory: contiguous, row-major.
struct TensorRef {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape = {};
  void* data = nullptr;

  std::size_t count() const {
    std::size_t product = 1;
    for (auto extent : shape) product *= static_cast<std::size_t>(extent);
    return product;
  }
  std::size_t bytes() const { return count() * size_of(type); }
};

/// Small facts that are saved beside the tensors ("epoch", "position", "seed"), as text.
using Facts = std::map<std::string, std::string>;

/// What and why, in a sentence for the user.
class CheckpointError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct CheckpointOptions {
  int keep_last = 3;  ///< older ones are removed after a save; at least 1
  /// Of its time, how much a save in the background may write, more than 0 and at most 1, until somebody waits for it.
  /// 0: all of it where the workers of this node leave a processor free, else a third: training goes on meanwhile.
  double background_share = 0;
};

struct LoadedCheckpoint {
  std::int64_t step = 0;
  Facts facts;
  std::filesystem::path path;
  std::vector<std::string> skipped;  ///< one sentence for each newer checkpoint that was not usable, and why
};

/// Not thread-safe. At most one process may save into a folder at a time.
class CheckpointStore {
 public:
  explicit CheckpointStore(std::filesystem::path folder, CheckpointOptions options = {});

  /// Writes and commits. Returns the checkpoint's folder. Throws CheckpointError (disk full, no permission), and
  /// std::invalid_argument that names the tensor with a negative extent or more bytes than can be counted; what was
  /// there before is untouched then.
  std::filesystem::path save(std::int64_t step, std::span<const TensorRef> tensors, const Facts& facts);

  /// Fills `tensors` from the newest whole checkpoint that has exactly these names, shapes and types. Nothing
  /// if the folder is absent or has no checkpoint at all. Throws CheckpointError if it has some and none is
  /// usable: training on from zero would overwrite them. `tensors` may hold anything then, since a file is compared
  /// with its checksum while it is read.
  std::optional<LoadedCheckpoint> load_newest(std::span<const TensorRef> tensors);

 private:
  std::filesystem::path folder_;
  CheckpointOptions options_;
};

}  // namespace muster::worker
