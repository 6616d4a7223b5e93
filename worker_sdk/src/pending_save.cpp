#include "worker_sdk/src/pending_save.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <charconv>
#include <chrono>
#include <map>

#include "worker_sdk/src/checkpoint_folder.hpp"
#include "worker_sdk/src/files.hpp"
#include "worker_sdk/src/group_texts.hpp"
#include "worker_sdk/src/rank_names.hpp"
#include "worker_sdk/src/safetensors_file.hpp"
#include "worker_sdk/src/shared_folder.hpp"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

/// What each rank puts into its place of the report; the sum over all ranks is everyone's.
enum Field : std::size_t {
  field_step,
  field_done,
  field_failed,
  field_bytes,
  field_checksum_high,
  field_checksum_low,
  field_count
};

constexpr std::int64_t was_superseded = 2;  ///< in field_failed
constexpr int background_niceness = 19;
/// An all-reduce in each step would cost more than the writing does.
constexpr int polls_per_question = 4;
constexpr std::size_t half_digits = 16;

std::int64_t half_of(const std::string& checksum, std::size_t from) {
  std::uint64_t value = 0;
  std::from_chars(checksum.data() + from, checksum.data() + from + half_digits, value, 16);
  return std::bit_cast<std::int64_t>(value);
}

std::string checksum_of_halves(std::int64_t high, std::int64_t low) {
  return fmt::format("{:016x}{:016x}", std::bit_cast<std::uint64_t>(high), std::bit_cast<std::uint64_t>(low));
}

}  // namespace

PendingSave::PendingSave(ProcessGroup& group, SaveTask task)
    : group_(group),
      task_(std::move(task)),
      pace_(task_.share),
      report_(
          std::make_shared<std::vector<std::int64_t>>(field_count * static_cast<std::size_t>(group.size()))) {
  if (task_.part) {
    job_ = std::async(std::launch::async, [this] { return write_part(); });
  } else {
    done_.emplace();
  }
}

PendingSave::~PendingSave() {
  pace_.hurry();
  // The backend may still write there, and waiting could take as long as a collective's timeout.
  static auto& kept = *new std::vector<std::shared_ptr<std::vector<std::int64_t>>>();
  if (answer_ && !answer_->done()) kept.push_back(report_);
}

PendingSave::Done PendingSave::write_part() {
  // Of this thread alone: on Linux niceness is a thread's. Where it is refused, the save is only less modest.
  if (task_.urgency == Urgency::background) (void)::setpriority(PRIO_PROCESS, 0, background_niceness);
  try {
    make_folder(task_.folder);
    make_folder(task_.temporary);
    const auto name = part_name(*task_.part, task_.index.parts.size());
    remove_tree(task_.temporary / name);  // of a run whose generation could not be noted
    const bool modest = task_.urgency == Urgency::background;
    FileWriter file(task_.temporary / name,
                    modest ? FileWriter::Through::direct : FileWriter::Through::page_cache,
                    modest ? [this] { pace_.rest(); } : std::function<void()>());
    write_tensors(file, task_.tensors, {});
    file.commit();
    return {{name, file.size_bytes(), file.checksum()}, {}};
  } catch (const CheckpointError& error) {
    return failure(error);
  }
}

std::string PendingSave::of_this_rank(const std::string& error) const {
  return group_.size() == 1 ? error : fmt::format("rank {}: {}", group_.rank(), error);
}

/// Who has saved since has removed what this run was writing: then that is why.
PendingSave::Done PendingSave::failure(const CheckpointError& error) const {
  try {
    refuse_if_superseded(task_.folder, task_.index.lineage);
  } catch (const SupersededError& superseded) {
    return {{}, superseded.what(), true};
  } catch (const CheckpointError&) {  // the first one says more
  }
  return {{}, of_this_rank(error.what())};
}

PendingSave::Done PendingSave::publish() const {
  try {
    make_folder(task_.temporary);  // nobody has, if there are no tensors
    for (std::size_t part = 0; part < writers_.size(); ++part)
      if (auto missing = missing_part(task_.temporary, task_.index.parts[part], writers_[part]);
          !missing.empty()) {
        refuse_if_superseded(task_.folder, task_.index.lineage);
        return {{}, std::move(missing)};
      }
    write_index(task_.temporary, task_.index);
    publish_checkpoint(task_.temporary, task_.folder, task_.index, task_.keep_last);
    return {};
  } catch (const CheckpointError& error) {
    return failure(error);
  }
}

void PendingSave::ask() {
  if (!done_ && job_.valid() && job_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    done_ = job_.get();
  std::fill(report_->begin(), report_->end(), 0);
  const auto own =
      std::span(*report_).subspan(field_count * static_cast<std::size_t>(group_.rank()), field_count);
  own[field_step] = task_.index.step;
  if (done_) {
    own[field_done] = 1;
    own[field_failed] = done_->superseded ? was_superseded : done_->error.empty() ? 0 : 1;
    own[field_bytes] = static_cast<std::int64_t>(done_->part.bytes);
    if (!done_->part.checksum.empty()) {
      own[field_checksum_high] = half_of(done_->part.checksum, 0);
      own[field_checksum_low] = half_of(done_->part.checksum, half_digits);
    }
  }
  answer_ = group_.all_reduce(buffer_of(std::span(*report_)), ReduceOp::sum);
}

std::optional<SaveOutcome> PendingSave::take_answer() {
  answer_->wait();
  answer_ = nullptr;
  return advance();
}

/// Nothing if all ranks save the same one.
std::string PendingSave::different_steps() const {
  std::map<std::int64_t, std::vector<int>> ranks_of;
  for (int rank = 0; rank < group_.size(); ++rank)
    ranks_of[(*report_)[field_count * static_cast<std::size_t>(rank) + field_step]].push_back(rank);
  if (ranks_of.size() == 1) return {};
  std::vector<std::string> parts;
  for (const auto& [step, ranks] : ranks_of)
    parts.push_back(fmt::format("{} save{} step {}", ranks_text(ranks), ranks.size() == 1 ? "s" : "", step));
  return fmt::format("{}: all ranks must save the same step", fmt::join(parts, ", "));
}

std::optional<SaveOutcome> PendingSave::advance() {
  if (const auto error = different_steps(); !error.empty()) return failed(error);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(group_.size()); ++rank)
    if ((*report_)[field_count * rank + field_done] == 0) return std::nullopt;
  bool failure = false, superseded = false;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(group_.size()); ++rank) {
    const auto report = std::span(*report_).subspan(field_count * rank, field_count);
    failure = failure || report[field_failed] != 0;
    superseded = superseded || report[field_failed] == was_superseded;
    if (phase_ == Phase::publishing || report[field_bytes] == 0) continue;
    auto& part = task_.index.parts.at(writers_.size());
    writers_.push_back(static_cast<int>(rank));
    part.bytes = static_cast<std::uint64_t>(report[field_bytes]);
    part.checksum = checksum_of_halves(report[field_checksum_high], report[field_checksum_low]);
  }
  if (failure) return failed(first_error(), superseded);
  if (phase_ == Phase::publishing)
    return SaveOutcome{task_.index.step, task_.folder / step_name(task_.index.step, task_.index.lineage), {}};
  phase_ = Phase::publishing;
  done_.reset();
  if (group_.rank() == 0) {
    job_ = std::async(std::launch::async, [this] { return publish(); });
  } else {
    done_.emplace();
  }
  return std::nullopt;
}

std::string PendingSave::first_error() {
  for (auto& error : exchange_texts(group_, done_->error))
    if (!error.empty()) return std::move(error);
  return {};
}

/// Each rank what it has written: not all of them need see the same folder. The next save may have the same name, so
/// nobody goes on before all are done, and only one removes what others may be removing too.
void PendingSave::remove_what_was_written() {
  pace_.hurry();
  if (job_.valid()) job_.wait();
  std::error_code ignored;  // what made the save fail is told; the litter goes with the next save
  if (task_.part) fs::remove(task_.temporary / part_name(*task_.part, task_.index.parts.size()), ignored);
  group_.barrier()->wait();
  if (group_.rank() != 0) {
    fs::remove(task_.temporary, ignored);  // if nothing is left in it
  } else {
    remove_leftovers(task_.folder, task_.index.lineage.generation);
  }
  group_.barrier()->wait();
}

SaveOutcome PendingSave::failed(const std::string& error, bool superseded) {
  remove_what_was_written();
  return {.step = task_.index.step, .path = {}, .error = error, .superseded = superseded};
}

std::optional<SaveOutcome> PendingSave::poll() {
  if (answer_) {
    if (auto outcome = take_answer()) return outcome;
  }
  if (polls_++ % polls_per_question == 0) ask();
  return std::nullopt;
}

SaveOutcome PendingSave::finish() {
  pace_.hurry();
  for (;;) {
    if (!answer_) {
      if (job_.valid()) job_.wait();
      ask();
    }
    if (auto outcome = take_answer()) return *outcome;
  }
}

}  // namespace muster::worker
