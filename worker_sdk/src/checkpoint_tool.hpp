// What `muster_checkpoint` does: looks at checkpoints, compares them with their checksums, makes one file of one.
//
// A path names a checkpoint (a folder with an index.json) or a folder of checkpoints.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::worker {

/// Step, facts, parts, and each tensor with the parts that its rows are in; of a folder, of its newest checkpoint.
/// Throws CheckpointError.
std::string inspect_checkpoint(const std::filesystem::path& path);

struct Verdict {
  std::filesystem::path checkpoint;
  std::string good;   ///< "2 parts, 4.8 MiB"; empty if it is bad
  std::string fault;  ///< empty if it is good
};

/// Of a folder, of each checkpoint in it, newest first. Throws CheckpointError where there is none.
std::vector<Verdict> verify_checkpoints(const std::filesystem::path& path);

struct Consolidated {
  std::filesystem::path checkpoint;
  std::size_t tensors = 0;
  std::vector<std::string> skipped;  ///< newer ones that were not usable, and why
};

/// Writes one safetensors file with the whole tensors whose names begin with `prefix`, which is cut off. Of a folder,
/// of its newest usable checkpoint. Holds a few megabytes in memory at a time. Throws CheckpointError, also for a file
/// inside a checkpoint and for what is there and no regular file.
Consolidated consolidate_checkpoint(const std::filesystem::path& path, const std::filesystem::path& file,
                                    const std::string& prefix);

}  // namespace muster::worker
