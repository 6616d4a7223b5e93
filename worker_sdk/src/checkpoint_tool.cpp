#include "worker_sdk/src/checkpoint_tool.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "worker_sdk/src/checkpoint_folder.hpp"
#include "worker_sdk/src/checkpoint_reader.hpp"
#include "worker_sdk/src/safetensors_header.hpp"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece_bytes = 4 << 20;

/// Newest first; the path itself if it is a checkpoint.
std::vector<fs::path> checkpoints_at(const fs::path& path) {
  if (fs::exists(path / "index.json")) return {path};
  std::vector<fs::path> found;
  for (const auto& one : checkpoints_in(path)) found.push_back(path / one.name);
  if (found.empty())
    throw CheckpointError(
        path.string() + ": no checkpoint; expected a folder with an index.json, or one with step-* folders");
  return found;
}

CheckpointReader open(const fs::path& checkpoint) {
  return {checkpoint, decode_index(read_index_text(checkpoint))};
}

void verify(CheckpointReader& reader) {
  for (std::size_t part = 0; part < reader.index().parts.size(); ++part) {
    reader.verify_part(part);
    reader.open_part(part);
  }
}

std::string size_text(std::uint64_t bytes) {
  constexpr double kib = 1024;
  const auto size = static_cast<double>(bytes);
  if (size < kib) return fmt::format("{} B", bytes);
  if (size < kib * kib) return fmt::format("{:.1f} KiB", size / kib);
  if (size < kib * kib * kib) return fmt::format("{:.1f} MiB", size / kib / kib);
  return fmt::format("{:.1f} GiB", size / kib / kib / kib);
}

std::string parts_text(const CheckpointIndex& index) {
  std::uint64_t bytes = 0;
  for (const auto& part : index.parts) bytes += part.bytes;
  return fmt::format("{} part{}, {}", index.parts.size(), index.parts.size() == 1 ? "" : "s",
                     size_text(bytes));
}

std::string place_text(const IndexedTensor& tensor) {
  std::vector<std::string> places;
  for (const auto& slice : tensor.slices)
    places.push_back(tensor.slices.size() == 1
                         ? fmt::format("part {}", slice.part)
                         : fmt::format("part {} rows {}-{}", slice.part, slice.first_row,
                                       slice.first_row + slice.rows - 1));
  return fmt::format("{}", fmt::join(places, ", "));
}

void copy_tensor(CheckpointReader& reader, const IndexedTensor& tensor, FileWriter& file) {
  const auto row_bytes = std::max<std::size_t>(row_bytes_of(tensor), 1);
  const auto rows_at_once = static_cast<std::int64_t>(std::max<std::size_t>(piece_bytes / row_bytes, 1));
  std::vector<std::byte> piece;
  for (std::int64_t row = 0; row < rows_of(tensor.shape); row += rows_at_once) {
    const auto rows = std::min(rows_at_once, rows_of(tensor.shape) - row);
    piece.resize(static_cast<std::size_t>(rows) * row_bytes_of(tensor));
    reader.read_rows({&tensor, row, rows, piece});
    file.write(piece);
  }
}

bool is_checkpoint(const fs::path& folder) {
  std::error_code ignored;  // what cannot be looked at is not taken for one
  if (!fs::exists(folder / "index.json", ignored)) return false;
  const auto names = names_in(folder);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.starts_with("part-"); });
}

/// A checkpoint that has another file in its place, or one more, is none any longer.
void check_outside_of_checkpoints(const fs::path& file) {
  std::error_code error;
  const auto target = fs::weakly_canonical(fs::absolute(file_to_write(file)), error);
  if (error) throw CheckpointError(errno_error(file.string(), error.value()).sentence());
  for (auto folder = target.parent_path(); folder != folder.root_path(); folder = folder.parent_path())
    if (is_checkpoint(folder))
      throw CheckpointError(
          fmt::format("{}: lies in the checkpoint {}; expected a file outside of checkpoints", file.string(),
                      folder.string()));
}

std::size_t write_consolidated(CheckpointReader& reader, const fs::path& path, const std::string& prefix) {
  std::vector<const IndexedTensor*> chosen;
  std::vector<TensorRef> named;
  for (const auto& tensor : reader.index().tensors) {
    if (!tensor.name.starts_with(prefix)) continue;
    chosen.push_back(&tensor);
    named.push_back({tensor.name.substr(prefix.size()), tensor.type, tensor.shape, nullptr});
  }
  if (chosen.empty())
    throw CheckpointError(
        fmt::format("no tensor's name begins with '{}'; `muster_checkpoint inspect` lists them", prefix));
  const auto plan = plan_safetensors(named, {{"format", "pt"}});
  write_whole_file(path, [&](FileWriter& file) {
    file.write(std::as_bytes(std::span(plan.head)));
    for (auto place : plan.order) copy_tensor(reader, *chosen[place], file);
  });
  return chosen.size();
}

}  // namespace

std::string inspect_checkpoint(const fs::path& path) {
  const auto checkpoint = checkpoints_at(path).front();
  const auto reader = open(checkpoint);
  const auto& index = reader.index();
  auto text = fmt::format("{}\nstep {}, {}\n", checkpoint.string(), index.step, parts_text(index));
  if (const auto& run = index.lineage; run.generation > 0)
    text += fmt::format("run     generation {}, round {}, job '{}'\n", run.generation, run.round, run.job);
  for (const auto& [name, value] : index.facts) text += fmt::format("fact    {} = {}\n", name, value);
  for (const auto& part : index.parts)
    text += fmt::format("part    {}  {}  xxh3-128 {}\n", part.file, size_text(part.bytes), part.checksum);
  for (const auto& tensor : index.tensors)
    text += fmt::format("tensor  {}  {} [{}]  {}\n", tensor.name, name_of(tensor.type),
                        fmt::join(tensor.shape, ", "), place_text(tensor));
  return text;
}

std::vector<Verdict> verify_checkpoints(const fs::path& path) {
  std::vector<Verdict> verdicts;
  for (const auto& checkpoint : checkpoints_at(path)) {
    try {
      auto reader = open(checkpoint);
      verify(reader);
      verdicts.push_back({checkpoint, parts_text(reader.index()), {}});
    } catch (const CheckpointError& error) {
      verdicts.push_back({checkpoint, {}, error.what()});
    }
  }
  return verdicts;
}

Consolidated consolidate_checkpoint(const fs::path& path, const fs::path& file, const std::string& prefix) {
  check_outside_of_checkpoints(file);
  std::vector<std::string> skipped;
  for (const auto& checkpoint : checkpoints_at(path)) {
    std::optional<CheckpointReader> reader;
    try {
      reader.emplace(open(checkpoint));
      verify(*reader);
    } catch (const CheckpointError& error) {
      skipped.push_back(fmt::format("{}: {}", checkpoint.string(), error.what()));
      continue;
    }
    const auto tensors = write_consolidated(*reader, file, prefix);
    return {checkpoint, tensors, std::move(skipped)};
  }
  throw CheckpointError(fmt::format("no usable checkpoint: {}", fmt::join(skipped, "; ")));
}

}  // namespace muster::worker
