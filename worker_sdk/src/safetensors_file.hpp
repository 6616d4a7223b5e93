// A safetensors file on disk, for the checkpoint store and for the public calls.
#pragma once

#include "muster/worker/checkpoint.hpp"
#include "worker_sdk/src/files.hpp"
#include "worker_sdk/src/safetensors_header.hpp"

namespace muster::worker {

/// Does not commit: the caller may want the writer's size and checksum.
void write_tensors(FileWriter& file, std::span<const TensorRef> tensors,
                   const std::map<std::string, std::string>& metadata);

/// The header of an open file, and where its data starts in it.
struct OpenSafetensors {
  SafetensorsHeader header;
  std::uint64_t data_offset = 0;
};

/// Throws CheckpointError without the path.
OpenSafetensors open_safetensors(const FileReader& file);

}  // namespace muster::worker
