#include "muster/worker/sharded_checkpoint.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <thread>

#include "worker_sdk/src/checkpoint_folder.hpp"
#include "worker_sdk/src/checkpoint_reader.hpp"
#include "worker_sdk/src/files.hpp"
#include "worker_sdk/src/group_texts.hpp"
#include "worker_sdk/src/pace.hpp"
#include "worker_sdk/src/pending_save.hpp"
#include "worker_sdk/src/shared_folder.hpp"
#include "worker_sdk/src/slice_plan.hpp"
#include "worker_sdk/src/snapshot.hpp"
#include "worker_sdk/src/told.hpp"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;
using FactsCheck = std::function<std::string(const Facts&)>;

/// The first rank's error, empty if there is none; the same on every rank.
std::string first_error(ProcessGroup& group, const std::string& own) {
  std::array<std::int64_t, 1> failures{own.empty() ? 0 : 1};
  group.all_reduce(buffer_of(std::span<std::int64_t>(failures)), ReduceOp::sum)->wait();
  if (failures[0] == 0) return {};
  const auto errors = exchange_texts(group, own);
  for (std::size_t rank = 0; rank < errors.size(); ++rank)
    if (!errors[rank].empty())
      return errors.size() == 1 ? errors[rank] : fmt::format("rank {}: {}", rank, errors[rank]);
  return {};
}

/// What `call` throws, as text.
std::string error_of(const auto& call) {
  try {
    call();
    return {};
  } catch (const CheckpointError& error) {
    return error.what();
  }
}

/// As the options say, else by what is left of the processors that this worker may use.
double share_of(const CheckpointOptions& options) {
  if (options.background_share > 0) return options.background_share;
  const auto threads =
      told_number("LOCAL_WORLD_SIZE", 1) * std::max<std::int64_t>(told_number("OMP_NUM_THREADS", 1), 1);
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  return background_share(static_cast<int>(std::min<std::int64_t>(threads, processors)), processors);
}

}  // namespace

std::size_t TensorSlice::row_bytes() const { return row_bytes_of(shape, type); }

TensorSlice whole(const TensorRef& tensor) {
  return {.name = tensor.name,
          .type = tensor.type,
          .shape = tensor.shape,
          .first_row = 0,
          .rows = rows_of(tensor.shape),
          .saves = true,
          .data = tensor.data};
}

struct ShardedCheckpoint::Impl {
  fs::path folder;
  CheckpointOptions options;
  ProcessGroup& group;
  std::vector<TensorSlice> slices;
  std::vector<std::vector<TensorSlice>> by_rank;
  SlicePlan plan;
  std::optional<Lineage> lineage;  ///< of what is saved, once it is settled
  Snapshot snapshot;
  std::unique_ptr<PendingSave> pending;

  void agree();
  std::vector<TensorRef> own_rows() const;
  std::string why_not_shared() const;
  std::vector<std::string> look();
  SaveTask task(std::int64_t step, const Facts& facts) const;
  std::optional<SaveOutcome> end_if_known(std::optional<SaveOutcome> outcome);
  struct NeededPart {
    std::size_t part = 0;
    bool verify = false;
  };
  std::vector<NeededPart> parts_needed(const CheckpointReader& reader) const;
  std::string open(CheckpointReader& reader, const std::vector<NeededPart>& needed) const;
  std::string read(CheckpointReader& reader, const std::vector<NeededPart>& needed) const;
  std::optional<LoadedCheckpoint> load(const std::string& name, const std::string& index_text,
                                       const FactsCheck& refuse, std::string& why_not);
  std::optional<LoadedCheckpoint> load_first(const std::vector<std::string>& names, const FactsCheck& refuse,
                                             std::vector<SkippedCheckpoint>& skipped);
};

/// Everyone learns what everyone holds.
void ShardedCheckpoint::Impl::agree() {
  for (const auto& text : exchange_texts(group, encode_slices(slices)))
    by_rank.push_back(decode_slices(text));
  plan = plan_slices(by_rank);
}

std::vector<TensorRef> ShardedCheckpoint::Impl::own_rows() const {
  std::vector<TensorRef> tensors;
  for (const auto& slice : slices)
    if (slice.saves && slice.rows > 0)
      tensors.push_back({slice.name, slice.type, shape_of_slice(slice.shape, slice.rows), slice.data});
  return tensors;
}

/// Only where a part is written by another rank than rank 0, which publishes it.
std::string ShardedCheckpoint::Impl::why_not_shared() const {
  const auto& parts = plan.part_of_rank;
  if (std::none_of(parts.begin() + 1, parts.end(), [](const auto& part) { return part.has_value(); }))
    return {};
  return worker::why_not_shared(group, folder, lineage->generation,
                                parts[static_cast<std::size_t>(group.rank())].has_value());
}

SaveTask ShardedCheckpoint::Impl::task(std::int64_t step, const Facts& facts) const {
  SaveTask task{
      .folder = folder,
      .temporary = folder / temporary_name(step, lineage->generation),
      .keep_last = options.keep_last,
      .index = {.step = step, .lineage = *lineage, .facts = facts, .parts = {}, .tensors = plan.tensors},
      .part = plan.part_of_rank[static_cast<std::size_t>(group.rank())],
      .tensors = own_rows(),
      .share = share_of(options)};
  for (std::size_t part = 0; part < plan.parts; ++part)
    task.index.parts.push_back({part_name(part, plan.parts), 0, {}});
  return task;
}

/// What rank 0 sees in the folder, newest first; with it this run's place among those that saved there is settled.
std::vector<std::string> ShardedCheckpoint::Impl::look() {
  std::vector<StoredCheckpoint> found;
  Lineage next{.job = told_text("TORCHELASTIC_RUN_ID")};
  std::string error;
  if (group.rank() == 0)
    error = error_of([&] {
      found = checkpoints_in(folder);
      next = begin_run(folder, found, options, lineage);
    });
  error = broadcast_text(group, error, 0);
  if (!error.empty()) throw CheckpointError(error);
  std::array<std::int64_t, 2> numbers{next.generation, next.round};
  group.broadcast(buffer_of(std::span<std::int64_t>(numbers)), 0)->wait();
  next.generation = numbers[0];
  next.round = numbers[1];
  lineage = std::move(next);
  return broadcast_texts(group, names_of(found), 0);
}

std::optional<SaveOutcome> ShardedCheckpoint::Impl::end_if_known(std::optional<SaveOutcome> outcome) {
  if (outcome) pending.reset();
  return outcome;
}

/// By this rank. Each part is compared with its checksum by one of the ranks that need it.
std::vector<ShardedCheckpoint::Impl::NeededPart> ShardedCheckpoint::Impl::parts_needed(
    const CheckpointReader& reader) const {
  std::vector<std::vector<std::size_t>> needed_by(reader.index().parts.size());
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    std::set<std::size_t> needed;
    for (const auto& slice : by_rank[rank])
      needed.merge(CheckpointReader::parts_of(*reader.find(slice.name), slice.first_row, slice.rows));
    for (auto part : needed) needed_by[part].push_back(rank);
  }
  const auto own = static_cast<std::size_t>(group.rank());
  std::vector<NeededPart> needed;
  for (std::size_t part = 0; part < needed_by.size(); ++part) {
    const auto& ranks = needed_by[part];
    if (std::find(ranks.begin(), ranks.end(), own) != ranks.end())
      needed.push_back({part, ranks[part % ranks.size()] == own});
  }
  return needed;
}

/// Sizes and headers: what can be seen without reading all of it.
std::string ShardedCheckpoint::Impl::open(CheckpointReader& reader,
                                          const std::vector<NeededPart>& needed) const {
  return error_of([&] {
    for (const auto& one : needed) reader.open_part(one.part);
  });
}

std::string ShardedCheckpoint::Impl::read(CheckpointReader& reader,
                                          const std::vector<NeededPart>& needed) const {
  std::vector<WantedRows> wanted;
  for (const auto& slice : slices)
    wanted.push_back({reader.find(slice.name),
                      slice.first_row,
                      slice.rows,
                      {static_cast<std::byte*>(slice.data), slice.bytes()}});
  return error_of([&] {
    for (const auto& one : needed) reader.read_part(one.part, wanted, one.verify);
  });
}

std::optional<LoadedCheckpoint> ShardedCheckpoint::Impl::load(const std::string& name,
                                                              const std::string& index_text,
                                                              const FactsCheck& refuse,
                                                              std::string& why_not) {
  const auto place = folder / name;
  const auto step = named_checkpoint(name)->step;
  std::optional<CheckpointReader> reader;
  why_not = error_of([&] {
    reader.emplace(place, decode_index(index_text));
    if (reader->index().step != step)
      throw CheckpointError(fmt::format("index.json says step {}", reader->index().step));
    std::vector<TensorRef> wanted;
    for (const auto& tensor : plan.tensors)
      wanted.push_back({tensor.name, tensor.type, tensor.shape, nullptr});
    if (const auto reason = difference(reader->index(), wanted)) throw CheckpointError(*reason);
    if (const auto reason = refuse ? refuse(reader->index().facts) : std::string(); !reason.empty())
      throw CheckpointError(reason);
  });
  if (!why_not.empty()) return std::nullopt;  // all ranks have looked at the same text
  const auto needed = parts_needed(*reader);
  why_not = first_error(group, open(*reader, needed));
  if (!why_not.empty()) return std::nullopt;
  // From here on the caller's memory is written.
  why_not = first_error(group, read(*reader, needed));
  if (!why_not.empty()) return std::nullopt;
  return LoadedCheckpoint{.step = step,
                          .facts = reader->index().facts,
                          .path = place,
                          .lineage = reader->index().lineage,
                          .skipped = {}};
}

/// The first of these that can be used; else nothing, and why in `skipped`.
std::optional<LoadedCheckpoint> ShardedCheckpoint::Impl::load_first(const std::vector<std::string>& names,
                                                                    const FactsCheck& refuse,
                                                                    std::vector<SkippedCheckpoint>& skipped) {
  for (const auto& name : names) {
    std::string index_text;
    std::string why_not;
    if (group.rank() == 0) why_not = error_of([&] { index_text = read_index_text(folder / name); });
    why_not = broadcast_text(group, why_not, 0);
    index_text = broadcast_text(group, index_text, 0);
    std::optional<LoadedCheckpoint> loaded;
    if (why_not.empty()) loaded = load(name, index_text, refuse, why_not);
    if (loaded) {
      loaded->skipped = texts_of(skipped);
      return loaded;
    }
    skipped.push_back({name, why_not});
  }
  return std::nullopt;
}

ShardedCheckpoint::ShardedCheckpoint(fs::path folder, CheckpointOptions options, ProcessGroup& group,
                                     std::vector<TensorSlice> slices)
    : impl_(std::make_unique<Impl>(Impl{.folder = std::move(folder),
                                        .options = options,
                                        .group = group,
                                        .slices = std::move(slices),
                                        .by_rank = {},
                                        .plan = {},
                                        .lineage = {},
                                        .snapshot = {},
                                        .pending = {}})) {
  if (options.keep_last < 1)
    throw std::invalid_argument(fmt::format("keep_last {}: at least 1 is needed", options.keep_last));
  if (!(options.background_share >= 0 && options.background_share <= 1))
    throw std::invalid_argument(
        fmt::format("background_share {}: from 0 to 1 is allowed", options.background_share));
  impl_->agree();
}

ShardedCheckpoint::~ShardedCheckpoint() = default;

std::optional<LoadedCheckpoint> ShardedCheckpoint::load_newest(const FactsCheck& refuse) {
  std::vector<SkippedCheckpoint> skipped;
  // A run that is being superseded may remove what this one is reading, for it has saved a newer one: looked at again.
  std::vector<std::string> before;
  for (auto names = impl_->look(); names.empty() || names != before; names = impl_->look()) {
    if (names.empty()) {
      // The run is at its beginning: now is the time to say that what it saves could not be loaded again.
      if (const auto apart = impl_->why_not_shared(); !apart.empty()) throw CheckpointError(apart);
      return std::nullopt;
    }
    skipped.clear();
    if (auto loaded = impl_->load_first(names, refuse, skipped)) return loaded;
    before = std::move(names);
  }
  const auto apart = impl_->why_not_shared();
  throw apart.empty() ? none_usable(impl_->folder, skipped) : none_usable(impl_->folder, skipped, apart);
}

const Lineage& ShardedCheckpoint::lineage() const {
  static const Lineage unknown;
  return impl_->lineage ? *impl_->lineage : unknown;
}

void ShardedCheckpoint::start_save(std::int64_t step, const Facts& facts) {
  if (saving()) throw std::logic_error("a save is under way: finish() it first");
  check_step(step);
  if (!impl_->lineage) impl_->look();
  auto task = impl_->task(step, facts);
  task.tensors = impl_->snapshot.take(std::move(task.tensors));
  impl_->pending = std::make_unique<PendingSave>(impl_->group, std::move(task));
}

bool ShardedCheckpoint::saving() const { return impl_->pending != nullptr; }

std::optional<SaveOutcome> ShardedCheckpoint::poll() {
  if (!saving()) return std::nullopt;
  return impl_->end_if_known(impl_->pending->poll());
}

std::optional<SaveOutcome> ShardedCheckpoint::finish() {
  if (!saving()) return std::nullopt;
  return impl_->end_if_known(impl_->pending->finish());
}

SaveOutcome ShardedCheckpoint::save(std::int64_t step, const Facts& facts) {
  if (saving()) throw std::logic_error("a save is under way: finish() it first");
  check_step(step);
  if (!impl_->lineage) impl_->look();
  auto task = impl_->task(step, facts);
  task.urgency = Urgency::somebody_waits;
  impl_->pending = std::make_unique<PendingSave>(impl_->group, std::move(task));
  return *finish();
}

}  // namespace muster::worker
