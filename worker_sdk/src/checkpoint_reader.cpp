#include "worker_sdk/src/checkpoint_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "worker_sdk/src/safetensors_file.hpp"

namespace muster::worker {
namespace {

struct Overlap {
  std::int64_t first = 0;
  std::int64_t rows = 0;
};

Overlap overlap_of(const IndexedSlice& slice, std::int64_t first_row, std::int64_t rows) {
  const auto first = std::max(slice.first_row, first_row);
  const auto end = std::min(slice.first_row + slice.rows, first_row + rows);
  return {first, std::max<std::int64_t>(end - first, 0)};
}

}  // namespace

CheckpointReader::CheckpointReader(std::filesystem::path checkpoint, CheckpointIndex index)
    : checkpoint_(std::move(checkpoint)), index_(std::move(index)) {
  for (const auto& tensor : index_.tensors) by_name_[tensor.name] = &tensor;
}

const IndexedTensor* CheckpointReader::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

FileReader CheckpointReader::file_of(std::size_t part) const {
  const auto& expected = index_.parts.at(part);
  FileReader file(checkpoint_ / expected.file);
  if (file.size_bytes() != expected.bytes)
    throw CheckpointError(
        fmt::format("{} has {} of {} bytes", expected.file, file.size_bytes(), expected.bytes));
  return file;
}

void CheckpointReader::expect_checksum(std::size_t part, const Checksum& checksum) const {
  const auto& expected = index_.parts.at(part);
  if (checksum.hex() != expected.checksum)
    throw CheckpointError(expected.file + ": its checksum does not fit, it is damaged");
}

void CheckpointReader::verify_part(std::size_t part) const {
  const auto file = file_of(part);
  Checksum checksum;
  file.skim(0, file.size_bytes(), checksum);
  expect_checksum(part, checksum);
}

void CheckpointReader::open_part(std::size_t part) { opened(part); }

CheckpointReader::Part& CheckpointReader::opened(std::size_t part) {
  if (const auto found = parts_.find(part); found != parts_.end()) return found->second;
  const auto& name = index_.parts.at(part).file;
  auto file = file_of(part);
  OpenSafetensors open;
  try {
    open = open_safetensors(file);
  } catch (const CheckpointError& error) {
    throw CheckpointError(name + ": " + error.what());
  }
  const CheckpointError contradiction(name + " does not hold what index.json says");
  std::unordered_map<std::string, std::uint64_t> offsets;
  std::unordered_map<std::string, const SafetensorsEntry*> entries;
  for (const auto& entry : open.header.entries) entries[entry.name] = &entry;
  for (const auto& tensor : index_.tensors) {
    for (const auto& slice : tensor.slices) {
      if (slice.part != part) continue;
      const auto found = entries.find(tensor.name);
      if (found == entries.end() || found->second->type != tensor.type ||
          found->second->shape != shape_of_slice(tensor, slice.rows))
        throw contradiction;
      offsets[tensor.name] = open.data_offset + found->second->begin;
    }
  }
  if (offsets.size() != entries.size()) throw contradiction;
  return parts_.emplace(part, Part{std::move(file), std::move(offsets)}).first->second;
}

std::set<std::size_t> CheckpointReader::parts_of(const IndexedTensor& tensor, std::int64_t first_row,
                                                 std::int64_t rows) {
  std::set<std::size_t> parts;
  for (const auto& slice : tensor.slices)
    if (overlap_of(slice, first_row, rows).rows > 0) parts.insert(slice.part);
  return parts;
}

std::vector<CheckpointReader::Piece> CheckpointReader::pieces_of(std::size_t part, const WantedRows& wanted) {
  std::vector<Piece> pieces;
  const auto& tensor = *wanted.tensor;
  const auto row_bytes = row_bytes_of(tensor);
  for (const auto& slice : tensor.slices) {
    const auto overlap = overlap_of(slice, wanted.first_row, wanted.rows);
    if (slice.part != part || overlap.rows == 0) continue;
    const auto skip = static_cast<std::uint64_t>(overlap.first - slice.first_row) * row_bytes;
    pieces.push_back(
        {opened(part).offsets.at(tensor.name) + skip,
         wanted.into.subspan(static_cast<std::size_t>(overlap.first - wanted.first_row) * row_bytes,
                             static_cast<std::size_t>(overlap.rows) * row_bytes)});
  }
  return pieces;
}

void CheckpointReader::read_rows(const WantedRows& wanted) {
  for (auto part : parts_of(*wanted.tensor, wanted.first_row, wanted.rows))
    read_part(part, {&wanted, 1}, false);
}

void CheckpointReader::read_part(std::size_t part, std::span<const WantedRows> wanted, bool verify) {
  std::vector<Piece> pieces;
  for (const auto& rows : wanted)
    for (const auto& piece : pieces_of(part, rows)) pieces.push_back(piece);
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.offset < b.offset; });

  const auto& file = opened(part).file;
  Checksum checksum;
  std::uint64_t read_to = 0;
  for (const auto& piece : pieces) {
    if (!verify || piece.offset < read_to) {  // the second to want the same rows
      file.read(piece.offset, piece.into);
      continue;
    }
    file.skim(read_to, piece.offset, checksum);
    file.read(piece.offset, piece.into, checksum);
    read_to = piece.offset + piece.into.size();
  }
  if (!verify) return;
  file.skim(read_to, file.size_bytes(), checksum);
  expect_checksum(part, checksum);
}

}  // namespace muster::worker
