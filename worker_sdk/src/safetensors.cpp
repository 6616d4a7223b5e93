#include "muster/worker/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "worker_sdk/src/safetensors_file.hpp"

namespace muster::worker {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

void write_tensors(FileWriter& file, std::span<const TensorRef> tensors,
                   const std::map<std::string, std::string>& metadata) {
  const auto plan = plan_safetensors(tensors, metadata);
  file.write(std::as_bytes(std::span(plan.head)));
  for (auto index : plan.order)
    file.write({static_cast<const std::byte*>(tensors[index].data), tensors[index].bytes()});
}

OpenSafetensors open_safetensors(const FileReader& file) {
  std::array<std::byte, safetensors_length_bytes> length{};
  const auto available = std::min<std::uint64_t>(length.size(), file.size_bytes());
  file.read(0, std::span(length).first(static_cast<std::size_t>(available)));
  const auto header_bytes = decode_safetensors_length(length, file.size_bytes());
  std::string header(header_bytes, '\0');
  file.read(safetensors_length_bytes, std::as_writable_bytes(std::span(header)));
  OpenSafetensors open;
  open.data_offset = safetensors_length_bytes + header_bytes;
  open.header = decode_safetensors_header(header, file.size_bytes() - open.data_offset);
  return open;
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorRef> tensors,
                       const std::map<std::string, std::string>& metadata) {
  write_whole_file(path, [&](FileWriter& file) { write_tensors(file, tensors, metadata); });
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  const FileReader file(path);
  OpenSafetensors open;
  try {
    open = open_safetensors(file);
  } catch (const CheckpointError& error) {
    throw CheckpointError(path.string() + ": " + error.what());
  }
  SafetensorsFile result;
  result.metadata = std::move(open.header.metadata);
  result.storage.resize(file.size_bytes() - open.data_offset);
  file.read(open.data_offset, result.storage);
  for (auto& entry : open.header.entries)
    result.tensors.push_back({.name = std::move(entry.name),
                              .type = entry.type,
                              .shape = std::move(entry.shape),
                              .data = result.storage.data() + entry.begin});
  return result;
}

}  // namespace muster::worker
