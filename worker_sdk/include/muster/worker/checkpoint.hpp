// Checkpoints on disk: atomic (a half-written one is never loaded), checksummed, several kept.
//
// One checkpoint is a folder `step-<12 digits>-generation-<g>-round-<r>` with an `index.json` and one safetensors file
// for each part. It is written under a temporary name, flushed to disk, and renamed into place: it is there whole or not
// at all.
//
// A world that was cut off can still be training while the next one has gone on from its checkpoints. So each
// checkpoint tells which run saved it (Lineage), "newest" is the newest of the newest run, whatever its step, and who was
// superseded touches nothing of the newer run's and is told so when it saves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "muster/worker/element_type.hpp"
#include "muster/worker/process_group.hpp"

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

/// A run of a training: one life of its world, which went on from the newest checkpoint that it found.
struct Lineage {
  /// No other run in the folder has it: claimed when the run begins, greater than any that is there; 0: not known (an
  /// older version).
  std::int64_t generation = 0;
  std::int64_t round = 0;  ///< of the launcher's rendezvous; 0 where it tells none
  std::string job = {};    ///< TORCHELASTIC_RUN_ID; for messages

  /// Where a generation could not be claimed (a folder that cannot be written), the later round counts.
  bool is_newer_than(const Lineage& other) const {
    return std::pair(generation, round) > std::pair(other.generation, other.round);
  }
};

/// Another run has gone on from this training's checkpoints, and has saved since: what this one computes counts no
/// longer, and it should end.
class SupersededError : public CheckpointError {
  using CheckpointError::CheckpointError;
};

struct CheckpointOptions {
  int keep_last = 3;  ///< older ones are removed after a save; at least 1
  /// Of its time, how much a save in the background may write, more than 0 and at most 1, until somebody waits for it.
  /// 0: all of it where the workers of this node leave a processor free, else a third: training goes on meanwhile.
  double background_share = 0;
  std::optional<std::int64_t> round = {};  ///< Lineage::round of what is saved; nothing: MUSTER_ROUND
};

struct LoadedCheckpoint {
  std::int64_t step = 0;
  Facts facts;
  std::filesystem::path path;
  Lineage lineage = {};              ///< of the run that saved it
  std::vector<std::string> skipped;  ///< one sentence for each newer checkpoint that was not usable, and why
};

/// Not thread-safe. At most one process may save into a folder at a time.
class CheckpointStore {
 public:
  explicit CheckpointStore(std::filesystem::path folder, CheckpointOptions options = {});

  /// Writes and commits. Returns the checkpoint's folder. Throws CheckpointError (disk full, no permission), and
  /// std::invalid_argument that names the tensor with a negative extent or more bytes than can be counted; what was
  /// there before is untouched then. Without a load_newest() before it, it begins a run that is newer than all there.
  std::filesystem::path save(std::int64_t step, std::span<const TensorRef> tensors, const Facts& facts);

  /// Fills `tensors` from the newest whole checkpoint that has exactly these names, shapes and types. Nothing
  /// if the folder is absent or has no checkpoint at all. Throws CheckpointError if it has some and none is
  /// usable: training on from zero would overwrite them. `tensors` may hold anything then, since a file is compared
  /// with its checksum while it is read.
  std::optional<LoadedCheckpoint> load_newest(std::span<const TensorRef> tensors);
  /// A collective call: what rank 0 finds, or fails with, on every rank; it alone needs to see the folder. Throws
  /// std::invalid_argument, on every rank, that names the ranks whose tensors are not those of rank 0.
  std::optional<LoadedCheckpoint> load_newest(std::span<const TensorRef> tensors, ProcessGroup& group);

 private:
  std::filesystem::path folder_;
  CheckpointOptions options_;
  std::optional<Lineage> lineage_;  ///< of what it saves, once that is known
};

}  // namespace muster::worker
