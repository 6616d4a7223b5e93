// The folder that holds a run's checkpoints: their names, what is written before it has one, what is kept.
//
//   step-<12 digits>                        a whole checkpoint
//   .tmp-begun-run-<generation>             this run has begun; gone once it, or a later one, has saved
//   .tmp-step-<12 digits>-run-<generation>  one that is being written, or what a run that died has left; of no worth
//   .tmp-mark-<16 digits>-run-<generation>  for a moment, to see whether other ranks find it; of no worth
//
// Whether a writer still lives cannot be known from another machine, nor out of a container. But what older runs have
// left is of no worth once a newer one has saved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "worker_sdk/src/checkpoint_index.hpp"

namespace muster::worker {

constexpr std::int64_t max_checkpoint_step = 999'999'999'999;

std::string step_name(std::int64_t step);
std::string temporary_name(std::int64_t step, std::int64_t generation);
std::string temporary_mark_name(std::uint64_t number, std::int64_t generation);
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

/// Of a run that begins now and sees these checkpoints there: a generation that no other run has, which is noted in the
/// folder (made, if it can be); the round as the options or the launcher say. `begun`, if none of them is newer.
Lineage begin_run(const std::filesystem::path& folder, const std::vector<StoredCheckpoint>& checkpoints,
                  const CheckpointOptions& options, const std::optional<Lineage>& begun);
/// It is noted no longer that it has begun.
void forget_run(const std::filesystem::path& folder, const Lineage& begun);

/// Of this run and older ones; nothing of this run's may be under way. That it has begun stays noted.
void remove_leftovers(const std::filesystem::path& folder, std::int64_t generation);

/// Throws SupersededError if a newer run has saved into the folder.
void refuse_if_superseded(const std::filesystem::path& folder, const Lineage& own);

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
/// it replaces, leftovers, and all but the `keep_last` newest. All of it is on disk before and after. Returns its path. Throws
/// SupersededError if a newer run has saved into the folder; `temporary` is left then.
std::filesystem::path publish_checkpoint(const std::filesystem::path& temporary,
                                         const std::filesystem::path& folder, const CheckpointIndex& index,
                                         int keep_last);

}  // namespace muster::worker
