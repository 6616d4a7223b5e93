#include "worker_sdk/src/checkpoint_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <limits>

#include "base/endpoint.hpp"
#include "base/unique_fd.hpp"
#include "worker_sdk/src/files.hpp"
#include "worker_sdk/src/told.hpp"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "step-";
constexpr std::string_view temporary_prefix = ".tmp-";
constexpr std::string_view of_run = "-run-";
constexpr std::string_view of_generation = "-generation-";
constexpr std::string_view of_round = "-round-";
constexpr std::int64_t max_number = std::numeric_limits<std::int64_t>::max() - 1;
constexpr const char* index_name = "index.json";
constexpr std::size_t max_named_steps = 3;  ///< of those that one reason keeps from use

/// Nothing: it is none.
std::optional<std::int64_t> number_in(std::string_view text, std::int64_t most = max_number) {
  const auto number = parse_integer(std::string(text), 0, most);
  if (!number) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

/// Nothing: it is no temporary name.
std::optional<std::int64_t> generation_of(const std::string& name) {
  const auto place = name.rfind(of_run);
  if (!name.starts_with(temporary_prefix) || place == std::string::npos) return std::nullopt;
  return number_in(name.substr(place + of_run.size()));
}

std::string begun_name(std::int64_t generation) {
  return fmt::format("{}begun{}{}", temporary_prefix, of_run, generation);
}

std::string numbered(std::int64_t step) { return fmt::format("{}{:012}", step_prefix, step); }

/// What clears up goes on over what is in its way, and tells the first of that.
class ClearingUp {
 public:
  void attempt(const auto& call) {
    try {
      call();
    } catch (const CheckpointError& error) {
      if (why_.empty()) why_ = error.what();
    }
  }
  const std::string& why() const { return why_; }

 private:
  std::string why_;
};

/// Under a name of this run's first, so that nobody finds half of it.
void remove_checkpoint(const fs::path& folder, const StoredCheckpoint& doomed, std::int64_t generation) {
  const auto aside = folder / temporary_name(doomed.step, generation);
  if (rename_if_there(folder / doomed.name, aside)) remove_tree(aside);
}

/// Removes what the checkpoint `saved` replaces, and all but the `keep` newest up to its step. One of a later step was
/// not usable when this run was resumed, or is of a run that was superseded; it stays, because only its owner knows
/// what it is worth, and it counts for nothing.
void prune(const fs::path& folder, const std::vector<StoredCheckpoint>& newest_first,
           const StoredCheckpoint& saved, int keep, ClearingUp& clearing_up) {
  for (const auto& old : newest_first) {
    if (old.step > saved.step) continue;
    const bool is_replaced = old.step == saved.step && old.name != saved.name;
    if (!is_replaced && keep-- > 0) continue;
    clearing_up.attempt([&] { remove_checkpoint(folder, old, saved.lineage->generation); });
  }
}

void remove_leftovers(const fs::path& folder, std::int64_t generation, ClearingUp& clearing_up) {
  std::vector<std::string> names;
  clearing_up.attempt([&] { names = names_in(folder); });
  for (const auto& name : names)
    if (const auto left_by = generation_of(name);
        left_by && *left_by <= generation && name != begun_name(generation))
      clearing_up.attempt([&] { remove_tree(folder / name); });
}

/// Once for a process: the next save will most likely find it again.
void tell_once(const fs::path& saved, const std::string& why) {
  static std::atomic_flag told;
  if (why.empty() || told.test_and_set()) return;
  fmt::print(stderr, "{}: saved, but what is no longer needed cannot be removed: {}\n", saved.string(), why);
}

std::optional<Lineage> lineage_in(const fs::path& checkpoint) {
  try {
    return decode_index(read_index_text(checkpoint)).lineage;
  } catch (const CheckpointError&) {
    return std::nullopt;  // why is told by who wants to load it
  }
}

std::string name_of(const Lineage& lineage) {
  const auto job = lineage.job.empty() ? "" : fmt::format(" of job '{}'", lineage.job);
  return lineage.round > 0 ? fmt::format("round {}{}", lineage.round, job) : "another run" + job;
}

/// By `found`, which is newer than `own`.
SupersededError superseded(const fs::path& folder, std::int64_t step, const Lineage& found,
                           const Lineage& own) {
  const bool same_job = found.job == own.job && found.round != own.round;
  return SupersededError(
      fmt::format("{}: {} has taken over from this one's checkpoints and saved step {}; what {} computes "
                  "counts no longer{}",
                  folder.string(), name_of(found), step, own.round > 0 ? name_of(own) : "this run",
                  same_job ? "" : " (two jobs need two folders)"));
}

void refuse_newer(const fs::path& folder, const std::vector<StoredCheckpoint>& checkpoints,
                  const Lineage& own) {
  for (const auto& found : checkpoints) {
    if (!found.lineage || !found.lineage->is_newer_than(own)) continue;
    throw superseded(folder, found.step, lineage_in(folder / found.name).value_or(*found.lineage), own);
  }
}

/// Runs are numbered on from the newest note: a later one does not need the others.
void remove_older_notes(const fs::path& folder, std::int64_t generation) {
  for (const auto& name : names_in(folder)) {
    const auto noted = generation_of(name);
    std::error_code ignored;
    if (noted && *noted < generation && name == begun_name(*noted)) fs::remove(folder / name, ignored);
  }
}

/// Its checkpoint tells of the run.
void remove_note(const fs::path& folder, std::int64_t generation) {
  std::error_code ignored;
  fs::remove(folder / begun_name(generation), ignored);
}

}  // namespace

std::string step_name(std::int64_t step, const Lineage& lineage) {
  return fmt::format("{}{}{}{}{}", numbered(step), of_generation, lineage.generation, of_round,
                     lineage.round);
}

std::string temporary_name(std::int64_t step, std::int64_t generation) {
  return fmt::format("{}{}{}{}", temporary_prefix, numbered(step), of_run, generation);
}

std::string temporary_mark_name(std::uint64_t number, std::int64_t generation) {
  return fmt::format("{}mark-{:016x}{}{}", temporary_prefix, number, of_run, generation);
}

std::optional<StoredCheckpoint> named_checkpoint(const std::string& name) {
  const auto generation_at = name.find(of_generation);
  const auto round_at = name.find(of_round);
  if (!name.starts_with(step_prefix)) return std::nullopt;
  const auto step = number_in(name.substr(0, generation_at).substr(step_prefix.size()), max_checkpoint_step);
  if (!step) return std::nullopt;
  if (name == numbered(*step)) return StoredCheckpoint{name, *step, {}};
  if (round_at == std::string::npos || generation_at > round_at) return std::nullopt;
  const auto first = generation_at + of_generation.size();
  const auto generation = number_in(name.substr(first, round_at - first));
  const auto round = number_in(name.substr(round_at + of_round.size()));
  if (!generation || !round) return std::nullopt;
  const Lineage lineage{.generation = *generation, .round = *round};
  if (name != step_name(*step, lineage)) return std::nullopt;
  return StoredCheckpoint{name, *step, lineage};
}

void sort_newest_first(std::vector<StoredCheckpoint>& checkpoints) {
  Lineage newest;
  for (const auto& one : checkpoints)
    if (one.lineage && one.lineage->is_newer_than(newest)) newest = *one.lineage;
  std::sort(checkpoints.begin(), checkpoints.end(), [&](const auto& a, const auto& b) {
    const auto &of_a = a.lineage.value_or(newest), &of_b = b.lineage.value_or(newest);
    if (of_a.is_newer_than(of_b) || of_b.is_newer_than(of_a)) return of_a.is_newer_than(of_b);
    return a.step > b.step;
  });
}

std::vector<StoredCheckpoint> checkpoints_in(const fs::path& folder) {
  std::vector<StoredCheckpoint> checkpoints;
  for (const auto& name : names_in(folder)) {
    auto found = named_checkpoint(name);
    if (!found) continue;
    if (!found->lineage) found->lineage = lineage_in(folder / name);
    checkpoints.push_back(std::move(*found));
  }
  sort_newest_first(checkpoints);
  return checkpoints;
}

std::vector<std::string> names_of(const std::vector<StoredCheckpoint>& checkpoints) {
  std::vector<std::string> names;
  for (const auto& one : checkpoints) names.push_back(one.name);
  return names;
}

Lineage begin_run(const fs::path& folder, const std::vector<StoredCheckpoint>& checkpoints,
                  const CheckpointOptions& options, const std::optional<Lineage>& begun) {
  std::int64_t newest = 0;
  for (const auto& one : checkpoints)
    if (one.lineage) newest = std::max(newest, one.lineage->generation);
  if (begun && begun->generation >= newest) return *begun;
  for (const auto& name : names_in(folder)) newest = std::max(newest, generation_of(name).value_or(0));
  Lineage own{.generation = newest + 1,
              .round = options.round ? *options.round : told_number("MUSTER_ROUND", 0),
              .job = told_text("TORCHELASTIC_RUN_ID")};
  try {
    make_folder(folder);
  } catch (const CheckpointError&) {  // who cannot write here hears of it when it saves
  }
  const auto note = [&] {
    const auto path = folder / begun_name(own.generation);
    return UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  };
  UniqueFd noted = note();
  for (; !noted && errno == EEXIST; noted = note())
    ++own.generation;  // another run begins at the same moment
  if (noted) remove_older_notes(folder, own.generation);
  return own;
}

void remove_leftovers(const fs::path& folder, std::int64_t generation) {
  ClearingUp without_a_word;
  remove_leftovers(folder, generation, without_a_word);
}

std::vector<std::string> texts_of(const std::vector<SkippedCheckpoint>& skipped) {
  std::vector<std::string> texts;
  for (const auto& one : skipped) texts.push_back(one.name + ": " + one.why);
  return texts;
}

CheckpointError none_usable(const fs::path& folder, const std::vector<SkippedCheckpoint>& skipped,
                            const std::string& advice) {
  std::vector<std::pair<std::string, std::vector<std::string>>>
      reasons;  // in the order of the first that has it
  for (const auto& one : skipped) {
    const auto same = [&](const auto& reason) { return reason.first == one.why; };
    auto place = std::find_if(reasons.begin(), reasons.end(), same);
    if (place == reasons.end()) place = reasons.insert(place, {one.why, {}});
    place->second.push_back(one.name);
  }
  std::vector<std::string> texts;
  for (const auto& [why, names] : reasons)
    texts.push_back(names.size() > max_named_steps ? fmt::format("{} to {}, {} of them: {}", names.front(),
                                                                 names.back(), names.size(), why)
                                                   : fmt::format("{}: {}", fmt::join(names, ", "), why));
  return CheckpointError(fmt::format("{}: none of its {} checkpoints can be used; {} ({})", folder.string(),
                                     skipped.size(), advice, fmt::join(texts, "; ")));
}

void check_step(std::int64_t step) {
  if (step < 0 || step > max_checkpoint_step)
    throw CheckpointError(fmt::format("step {} is not from 0 to {}", step, max_checkpoint_step));
}

void write_index(const fs::path& checkpoint, const CheckpointIndex& index) {
  const auto text = encode_index(index);
  FileWriter file(checkpoint / index_name);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

std::string read_index_text(const fs::path& checkpoint) {
  const FileReader file(checkpoint / index_name);
  if (file.size_bytes() > max_index_bytes)
    throw CheckpointError(fmt::format("index.json has {} bytes, more than the {} that are allowed",
                                      file.size_bytes(), max_index_bytes));
  std::string text(file.size_bytes(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void refuse_if_superseded(const fs::path& folder, const Lineage& own) {
  refuse_newer(folder, checkpoints_in(folder), own);
}

fs::path publish_checkpoint(const fs::path& temporary, const fs::path& folder, const CheckpointIndex& index,
                            int keep_last) {
  const auto& own = index.lineage;
  refuse_if_superseded(folder, own);
  sync_folder(temporary);
  const StoredCheckpoint saved{step_name(index.step, own), index.step, own};
  const auto place = folder / saved.name;
  if (fs::exists(fs::symlink_status(place))) {
    exchange_folders(temporary, place);  // this run has saved the step before
  } else {
    rename_path(temporary, place);
  }
  sync_folder(folder);

  ClearingUp clearing_up;  // whose failures change nothing of what is saved
  clearing_up.attempt([&] { remove_tree(temporary); });
  std::vector<StoredCheckpoint> stored;
  clearing_up.attempt([&] { stored = checkpoints_in(folder); });
  try {
    refuse_newer(folder, stored, own);
  } catch (const SupersededError&) {  // since the look above
    clearing_up.attempt([&] { remove_checkpoint(folder, saved, own.generation); });
    throw;
  }
  remove_note(folder, own.generation);
  remove_leftovers(folder, own.generation, clearing_up);
  prune(folder, stored, saved, keep_last, clearing_up);
  tell_once(place, clearing_up.why());
  return place;
}

}  // namespace muster::worker
