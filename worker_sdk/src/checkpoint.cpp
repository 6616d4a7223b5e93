#include "muster/worker/checkpoint.hpp"

#include <fmt/format.h>

#include <utility>

#include "worker_sdk/src/checkpoint_folder.hpp"
#include "worker_sdk/src/checkpoint_reader.hpp"
#include "worker_sdk/src/files.hpp"
#include "worker_sdk/src/safetensors_file.hpp"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

IndexedPart write_part(const fs::path& folder, std::size_t part, std::size_t parts,
                       std::span<const TensorRef> tensors) {
  const auto name = part_name(part, parts);
  FileWriter file(folder / name);
  write_tensors(file, tensors, {});
  file.commit();
  return {name, file.size_bytes(), file.checksum()};
}

LoadedCheckpoint load(const fs::path& checkpoint, std::int64_t step, std::span<const TensorRef> tensors) {
  CheckpointReader reader(checkpoint, decode_index(read_index_text(checkpoint)));
  const auto& index = reader.index();
  if (index.step != step) throw CheckpointError(fmt::format("index.json says step {}", index.step));
  if (const auto reason = difference(index, tensors)) throw CheckpointError(*reason);
  // What can be seen without reading all of it is seen before the caller's memory is written.
  for (std::size_t part = 0; part < index.parts.size(); ++part) reader.open_part(part);
  std::vector<WantedRows> wanted;
  for (const auto& tensor : tensors)
    wanted.push_back({reader.find(tensor.name),
                      0,
                      rows_of(tensor.shape),
                      {static_cast<std::byte*>(tensor.data), tensor.bytes()}});
  for (std::size_t part = 0; part < index.parts.size(); ++part) reader.read_part(part, wanted, true);
  return {.step = step, .facts = index.facts, .path = checkpoint, .lineage = index.lineage, .skipped = {}};
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, CheckpointOptions options)
    : folder_(std::move(folder)), options_(options) {
  if (options_.keep_last < 1)
    throw std::invalid_argument(fmt::format("keep_last {}: at least 1 is needed", options_.keep_last));
}

fs::path CheckpointStore::save(std::int64_t step, std::span<const TensorRef> tensors, const Facts& facts) {
  check_step(step);
  for (const auto& tensor : tensors) check_shape(tensor.name, tensor.shape, tensor.type);
  make_folder(folder_);
  if (!lineage_) lineage_ = begin_run(folder_, checkpoints_in(folder_), options_, lineage_);
  const auto temporary = folder_ / temporary_name(step, lineage_->generation);
  try {
    remove_tree(temporary);  // of a run whose generation could not be noted
    make_folder(temporary);
    CheckpointIndex index{.step = step, .lineage = *lineage_, .facts = facts, .parts = {}, .tensors = {}};
    index.parts.push_back(write_part(temporary, 0, 1, tensors));
    for (const auto& tensor : tensors) index.tensors.push_back(tensor_in_part(tensor, 0));
    write_index(temporary, index);
    return publish_checkpoint(temporary, folder_, index, options_.keep_last);
  } catch (const CheckpointError&) {
    remove_leftovers(folder_, lineage_->generation);
    throw;
  }
}

std::optional<LoadedCheckpoint> CheckpointStore::load_newest(std::span<const TensorRef> tensors) {
  std::vector<SkippedCheckpoint> skipped;
  std::vector<std::int64_t> before;
  // A run that is being superseded may remove what this one is reading, for it has saved a newer one: looked at again.
  for (;;) {
    const auto found = checkpoints_in(folder_);
    const auto steps = steps_of(found);
    if (!steps.empty() && steps == before) {
      forget_run(folder_, *std::exchange(lineage_, std::nullopt));
      throw none_usable(folder_, skipped);
    }
    before = steps;
    lineage_ = begin_run(folder_, found, options_, lineage_);
    if (steps.empty()) return std::nullopt;
    skipped.clear();
    for (auto step : steps) {
      try {
        auto loaded = load(folder_ / step_name(step), step, tensors);
        loaded.skipped = texts_of(skipped);
        return loaded;
      } catch (const CheckpointError& error) {
        skipped.push_back({step, error.what()});
      }
    }
  }
}

}  // namespace muster::worker
