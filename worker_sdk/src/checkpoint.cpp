#include "muster/worker/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <unordered_map>

#include "base/endpoint.hpp"
#include "worker_sdk/src/checkpoint_index.hpp"
#include "worker_sdk/src/files.hpp"
#include "worker_sdk/src/safetensors_file.hpp"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t max_step = 999'999'999'999;
constexpr std::string_view step_prefix = "step-";
constexpr std::string_view temporary_prefix = ".tmp-";
constexpr const char* index_name = "index.json";

std::string step_name(std::int64_t step) { return fmt::format("{}{:012}", step_prefix, step); }

std::string temporary_name(std::int64_t step) {
  return fmt::format("{}{}-{}", temporary_prefix, step_name(step), ::getpid());
}

/// Nothing for a name that is not a checkpoint's.
std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(step_prefix)) return std::nullopt;
  const auto step = parse_integer(name.substr(step_prefix.size()), 0, max_step);
  if (!step || step_name(*step) != name) return std::nullopt;
  return *step;
}

/// Newest first.
std::vector<std::int64_t> steps_in(const fs::path& folder) {
  std::vector<std::int64_t> steps;
  for (const auto& name : names_in(folder))
    if (const auto step = step_of(name)) steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

/// ".tmp-step-<digits>-<pid>" of a process that is gone, or of an earlier save of this one.
bool is_leftover(const std::string& name) {
  if (!name.starts_with(temporary_prefix)) return false;
  const auto dash = name.rfind('-');
  const auto pid = parse_integer(name.substr(dash + 1), 1, std::numeric_limits<pid_t>::max());
  if (!pid) return false;
  const auto writer = static_cast<pid_t>(*pid);
  return writer == ::getpid() || (::kill(writer, 0) != 0 && errno == ESRCH);
}

void remove_leftovers(const fs::path& folder) {
  for (const auto& name : names_in(folder))
    if (is_leftover(name)) remove_tree(folder / name);
}

IndexedPart write_part(const fs::path& folder, std::size_t part, std::size_t parts,
                       std::span<const TensorRef> tensors) {
  const auto name = part_name(part, parts);
  FileWriter file(folder / name);
  write_tensors(file, tensors, {});
  file.commit();
  return {name, file.size_bytes(), file.checksum()};
}

void write_index(const fs::path& folder, const CheckpointIndex& index) {
  const auto text = encode_index(index);
  FileWriter file(folder / index_name);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

/// Makes the finished folder visible under its name; all of it is on disk before and after.
void publish(const fs::path& temporary, const fs::path& folder, std::int64_t step) {
  sync_folder(temporary);
  const auto place = folder / step_name(step);
  if (fs::exists(fs::symlink_status(place))) {
    exchange_folders(temporary, place);
  } else {
    rename_path(temporary, place);
  }
  sync_folder(folder);
}

/// Removes all but the `keep` newest up to `step`. A newer one was not usable when this run was resumed; it
/// stays, because only its owner knows what it is worth, and it counts for nothing.
void prune(const fs::path& folder, std::int64_t step, int keep) {
  for (auto old : steps_in(folder)) {
    if (old > step || keep-- > 0) continue;
    const auto doomed = folder / temporary_name(old);
    rename_path(folder / step_name(old), doomed);
    remove_tree(doomed);
  }
}

CheckpointIndex read_index(const fs::path& checkpoint) {
  const FileReader file(checkpoint / index_name);
  if (file.size_bytes() > max_index_bytes)
    throw CheckpointError(fmt::format("index.json has {} bytes, more than the {} that are allowed",
                                      file.size_bytes(), max_index_bytes));
  std::string text(file.size_bytes(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return decode_index(text);
}

void check_part(const FileReader& file, const IndexedPart& part) {
  if (file.size_bytes() != part.bytes)
    throw CheckpointError(fmt::format("{} has {} of {} bytes", part.file, file.size_bytes(), part.bytes));
  if (file.checksum() != part.checksum)
    throw CheckpointError(part.file + ": its checksum does not fit, it is damaged");
}

void load_part(const fs::path& checkpoint, const CheckpointIndex& index, std::size_t part,
               const std::unordered_map<std::string, const TensorRef*>& tensors) {
  const FileReader file(checkpoint / index.parts[part].file);
  const auto open = open_safetensors(file);
  const CheckpointError contradiction(index.parts[part].file + " does not hold what index.json says");
  if (open.header.entries.size() != tensors.size()) throw contradiction;
  for (const auto& entry : open.header.entries) {
    const auto found = tensors.find(entry.name);
    if (found == tensors.end() || found->second->shape != entry.shape || found->second->type != entry.type)
      throw contradiction;
    const auto& tensor = *found->second;
    file.read(open.data_offset + entry.begin, {static_cast<std::byte*>(tensor.data), tensor.bytes()});
  }
}

LoadedCheckpoint load(const fs::path& checkpoint, std::int64_t step, std::span<const TensorRef> tensors) {
  auto index = read_index(checkpoint);
  if (index.step != step) throw CheckpointError(fmt::format("index.json says step {}", index.step));
  if (const auto reason = difference(index, tensors)) throw CheckpointError(*reason);
  for (const auto& part : index.parts) check_part(FileReader(checkpoint / part.file), part);

  // Only now, with everything seen to be whole, is the caller's memory written.
  std::vector<std::unordered_map<std::string, const TensorRef*>> by_part(index.parts.size());
  std::unordered_map<std::string_view, std::size_t> part_of;
  for (const auto& tensor : index.tensors) part_of[tensor.name] = tensor.part;
  for (const auto& tensor : tensors) by_part[part_of.at(tensor.name)][tensor.name] = &tensor;
  for (std::size_t part = 0; part < index.parts.size(); ++part)
    load_part(checkpoint, index, part, by_part[part]);
  return {.step = step, .facts = std::move(index.facts), .path = checkpoint, .skipped = {}};
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, CheckpointOptions options)
    : folder_(std::move(folder)), options_(options) {
  if (options_.keep_last < 1)
    throw std::invalid_argument(fmt::format("keep_last {}: at least 1 is needed", options_.keep_last));
}

fs::path CheckpointStore::save(std::int64_t step, std::span<const TensorRef> tensors, const Facts& facts) {
  if (step < 0 || step > max_step)
    throw CheckpointError(fmt::format("step {} is not from 0 to {}", step, max_step));
  make_folder(folder_);
  remove_leftovers(folder_);
  const auto temporary = folder_ / temporary_name(step);
  try {
    make_folder(temporary);
    CheckpointIndex index{.step = step, .facts = facts, .parts = {}, .tensors = {}};
    index.parts.push_back(write_part(temporary, 0, 1, tensors));
    for (const auto& tensor : tensors) index.tensors.push_back({tensor.name, tensor.type, tensor.shape, 0});
    write_index(temporary, index);
  } catch (const CheckpointError&) {
    remove_tree(temporary);
    throw;
  }
  publish(temporary, folder_, step);
  remove_tree(temporary);  // what publish() replaced
  prune(folder_, step, options_.keep_last);
  return folder_ / step_name(step);
}

std::optional<LoadedCheckpoint> CheckpointStore::load_newest(std::span<const TensorRef> tensors) {
  const auto steps = steps_in(folder_);
  if (steps.empty()) return std::nullopt;
  std::vector<std::string> skipped;
  for (auto step : steps) {
    try {
      auto loaded = load(folder_ / step_name(step), step, tensors);
      loaded.skipped = std::move(skipped);
      return loaded;
    } catch (const CheckpointError& error) {
      skipped.push_back(step_name(step) + ": " + error.what());
    }
  }
  throw CheckpointError(fmt::format(
      "{}: none of its {} checkpoints can be used ({}); move the folder away to start from the beginning",
      folder_.string(), steps.size(), fmt::join(skipped, "; ")));
}

}  // namespace muster::worker
