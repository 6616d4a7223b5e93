// Parameters as one safetensors file, under PyTorch's names, so that a torch.nn.Sequential of the same layers
// can load what is exported here and the other way round.
#pragma once

#include <filesystem>
#include <vector>

#include "trainers/tensor/parameter.hpp"

namespace muster::trainers {

/// Throws CheckpointError that names the path and the errno text.
void export_parameters(const std::filesystem::path& path, const std::vector<Parameter*>& parameters);

/// Fills the values. The file must have exactly these names and shapes, as float32. Throws
/// std::invalid_argument that names the file and what differs.
void load_parameters(const std::filesystem::path& path, const std::vector<Parameter*>& parameters);

}  // namespace muster::trainers
