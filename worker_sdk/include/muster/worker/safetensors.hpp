// The safetensors file format (a JSON header, then raw little-endian tensors), as Python's `safetensors` and
// PyTorch users read it.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "muster/worker/checkpoint.hpp"

namespace muster::worker {

/// Writes one file atomically (temporary name, flush, rename). Same tensors and metadata give the same bytes.
/// A link stays one, and the file that it names is written. Throws CheckpointError that names the path and the errno
/// text, or says that it is a device or a pipe, and std::invalid_argument for a tensor whose shape is not possible.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorRef> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// A file read into memory. `tensors[i].data` points into `storage`.
struct SafetensorsFile {
  std::map<std::string, std::string> metadata;
  std::vector<TensorRef> tensors;
  std::vector<std::byte> storage;
};

/// Throws CheckpointError that names the path, the offset and what was wrong there.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

}  // namespace muster::worker
