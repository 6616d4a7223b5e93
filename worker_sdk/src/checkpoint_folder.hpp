// The folder that holds a run's checkpoints: their names, what is written before it has one, what is kept.
//
//   step-<12 digits>            a whole checkpoint
//   .tmp-step-<12 digits>-<pid> one that is being written, or what a writer that died has left; of no worth
//   .tmp-mark-<16 digits>-<pid> for a moment, to see whether other ranks find it; of no worth
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "worker_sdk/src/checkpoint_index.hpp"

namespace muster::worker {

constexpr std::int64_t max_checkpoint_step = 999'999'999'999;

std::string step_name(std::int64_t step);
std::string temporary_name(std::int64_t step, pid_t writer);
std::string temporary_mark_name(std::uint64_t number, pid_t writer);
/// Nothing for a name that is not a checkpoint's.
std::optional<std::int64_t> step_of(const std::string& name);

struct StoredCheckpoint {
  std::int64_t step = 0;
  std::optional<Lineage> lineage;  ///< nothing: its index cannot be read
};

/// Pure. First what the newest run has saved, by its steps. One that cannot be read is sorted in as if the newest run had
/// saved it.
void sort_newest_first(std::vector<StoredCheckpoint>& checkpoints);
std::vector<StoredCheckpoint> checkpoints_in(const std::filesystem::path& folder);
std::vector<std::int64_t> steps_of(const std::vector<StoredCheckpoint>& checkpoints);

/// Of a run that begins now, from these; the round as the options or the launcher say.
Lineage next_lineage(const std::vector<StoredCheckpoint>& checkpoints, const CheckpointOptions& options);

/// Of processes that are gone, and of this one.
void remove_leftovers(const std::filesystem::path& folder);

struct SkippedCheckpoint {
  std::int64_t step = 0;
  std::string why;
};
/// "step-000000000042: why", one for each.
std::vector<std::string> texts_of(const std::vector<SkippedCheckpoint>& skipped);
/// "FOLDER: none of its 3 checkpoints can be used; ADVICE (step-..., step-...: why; step-...: why)".
CheckpointError none_usable(const std::filesystem::path& folder,
                            const std::vector<SkippedCheckpoint>& skipped,
                            const std::string& advice = "move the folder away to start from the beginning");

/// Throws CheckpointError for a step that has no name.
void check_step(std::int64_t step);

void write_index(const std::filesystem::path& checkpoint, const CheckpointIndex& index);
/// As text, so that it can be sent to others; decode_index() takes it.
std::string read_index_text(const std::filesystem::path& checkpoint);

/// Makes the finished folder `temporary`, with its index, visible as the checkpoint of the index's step, removes what
/// it replaces, and all but the `keep_last` newest. All of it is on disk before and after. Returns its path. Throws
/// SupersededError if a newer run has saved into the folder; `temporary` is left then.
std::filesystem::path publish_checkpoint(const std::filesystem::path& temporary,
                                         const std::filesystem::path& folder, const CheckpointIndex& index,
                                         int keep_last);

}  // namespace muster::worker
