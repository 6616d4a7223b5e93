#include "muster/worker/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <exception>
#include <utility>
#include <vector>

#include "worker_sdk/src/checkpoint_folder.hpp"
#include "worker_sdk/src/checkpoint_reader.hpp"
#include "worker_sdk/src/files.hpp"
#include "worker_sdk/src/group_texts.hpp"
#include "worker_sdk/src/rank_names.hpp"
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

/// The same on every rank, or every rank throws.
void check_same_tensors(std::span<const TensorRef> tensors, ProcessGroup& group) {
  std::string own;
  for (const auto& tensor : tensors)
    own += fmt::format("{} {}{} {}\n", tensor.name.size(), tensor.name, name_of(tensor.type),
                       fmt::join(tensor.shape, ","));
  const bool same = broadcast_text(group, own, 0) == own;
  std::vector<std::int64_t> others(static_cast<std::size_t>(group.size()));
  others[static_cast<std::size_t>(group.rank())] = same ? 0 : 1;
  group.all_reduce(buffer_of(std::span(others)), ReduceOp::sum)->wait();
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < others.size(); ++rank)
    if (others[rank] != 0) ranks.push_back(static_cast<int>(rank));
  if (!ranks.empty())
    throw std::invalid_argument(
        fmt::format("{} {} tensors of other names, types or shapes than rank 0: all ranks must load the same",
                    ranks_text(ranks), ranks.size() == 1 ? "has" : "have"));
}

/// Rank 0's, on every rank.
std::optional<LoadedCheckpoint> broadcast_loaded(ProcessGroup& group,
                                                 const std::optional<LoadedCheckpoint>& own) {
  const auto loaded = own.value_or(LoadedCheckpoint{});
  std::array<std::int64_t, 5> numbers{own ? 1 : 0, loaded.step, loaded.lineage.generation,
                                      loaded.lineage.round, static_cast<std::int64_t>(loaded.facts.size())};
  group.broadcast(buffer_of(std::span<std::int64_t>(numbers)), 0)->wait();
  std::vector<std::string> texts{loaded.path.string(), loaded.lineage.job};
  for (const auto& [name, value] : loaded.facts) texts.insert(texts.end(), {name, value});
  texts.insert(texts.end(), loaded.skipped.begin(), loaded.skipped.end());
  texts = broadcast_texts(group, texts, 0);
  if (numbers[0] == 0) return std::nullopt;
  LoadedCheckpoint theirs{.step = numbers[1],
                          .facts = {},
                          .path = texts[0],
                          .lineage = {numbers[2], numbers[3], texts[1]},
                          .skipped = {}};
  std::size_t next = 2;
  for (std::int64_t fact = 0; fact < numbers[4]; ++fact, next += 2)
    theirs.facts[texts[next]] = texts[next + 1];
  theirs.skipped.assign(texts.begin() + static_cast<std::ptrdiff_t>(next), texts.end());
  return theirs;
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
    refuse_if_superseded(folder_, *lineage_);  // who has saved since has removed what this one was writing
    throw;
  }
}

std::optional<LoadedCheckpoint> CheckpointStore::load_newest(std::span<const TensorRef> tensors) {
  std::vector<SkippedCheckpoint> skipped;
  std::vector<std::string> before;
  // A run that is being superseded may remove what this one is reading, for it has saved a newer one: looked at again.
  for (;;) {
    const auto found = checkpoints_in(folder_);
    const auto names = names_of(found);
    if (!names.empty() && names == before) throw none_usable(folder_, skipped);
    before = names;
    lineage_ = begin_run(folder_, found, options_, lineage_);
    if (names.empty()) return std::nullopt;
    skipped.clear();
    for (const auto& [name, step, lineage] : found) {
      try {
        auto loaded = load(folder_ / name, step, tensors);
        loaded.skipped = texts_of(skipped);
        return loaded;
      } catch (const CheckpointError& error) {
        skipped.push_back({name, error.what()});
      }
    }
  }
}

std::optional<LoadedCheckpoint> CheckpointStore::load_newest(std::span<const TensorRef> tensors,
                                                             ProcessGroup& group) {
  check_same_tensors(tensors, group);
  std::optional<LoadedCheckpoint> loaded;
  std::exception_ptr failure;
  std::string error;
  if (group.rank() == 0) {
    try {
      loaded = load_newest(tensors);
    } catch (const std::exception& raised) {
      failure = std::current_exception();
      error = raised.what();
    }
  }
  error = broadcast_text(group, error, 0);
  if (failure) std::rethrow_exception(failure);
  if (!error.empty()) throw CheckpointError(error);
  loaded = broadcast_loaded(group, loaded);
  if (!loaded) return loaded;
  std::vector<std::shared_ptr<Work>> under_way;
  for (const auto& tensor : tensors) {
    if (tensor.count() == 0) continue;
    const Buffer buffer{tensor.data, tensor.count(), tensor.type};
    under_way.push_back(group.broadcast(buffer.named(tensor.name), 0));
  }
  for (auto& work : under_way) work->wait();
  return loaded;
}

}  // namespace muster::worker
