// The folder that holds a run's checkpoints: their names, what is written before it has one, what is kept.
//
//   step-<12 digits>-generation-<generation>-round-<round>   a whole checkpoint
//   step-<12 digits>                        one of an older version, whose index alone tells the run
//   .tmp-begun-run-<generation>             this run has begun, and the next one is numbered on from it; gone once it has
//                                           saved, or a later one has begun
//   .tmp-step-<12 digits>-run-<generation>  one that is being written, or what a run that died has left; of no worth
//   .tmp-mark-<16 digits>-run-<generation>  for a moment, to see whether other ranks find it; of no worth
//
// Whether a writer still lives cannot be known from another machine, nor out of a container. But what older runs have
// left is of no worth once a newer one has saved.
//
// No file system removes, renames or replaces something only if it is what one has just looked at. So every name tells the
// run it belongs to, and no run gives, removes or replaces a name of a newer one: it may be stopped at any moment, for
// any time, between its look and what follows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "worker_sdk/src/checkpoint_index.hpp"

namespace muster::worker {

constexpr std::int64_t max_checkpoint_step = 999'999'999'999;

std::string step_name(std::int64_t step, const Lineage& lineage);
std::string temporary_name(std::int64_t step, std::int64_t generation);
std::string temporary_mark_name(std::uint64_t number, std::int64_t generation);

struct StoredCheckpoint {
  std::string name;  ///< in the folder
  std::int64_t step = 0;
  std::optional<Lineage> lineage;  ///< its job may be left out; nothing: neither name nor index tells it
};
/// Pure: as the name has it. Nothing for one that is not a checkpoint's.
std::optional<StoredCheckpoint> named_checkpoint(const std::string& name);

/// Pure. First what the newest run has saved, by its steps. One of which no run is known is sorted in as if the newest
/// had saved it.
void sort_newest_first(std::vector<StoredCheckpoint>& checkpoints);
std::vector<StoredCheckpoint> checkpoints_in(const std::filesystem::path& folder);
std::vector<std::string> names_of(const std::vector<StoredCheckpoint>& checkpoints);

/// Of a run that begins now and sees these checkpoints there: a generation that no other run has, which is noted in the
/// folder (made, if it can be); the round as the options or the launcher say. `begun`, if none of them is newer.
Lineage begin_run(const std::filesystem::path& folder, const std::vector<StoredCheckpoint>& checkpoints,
                  const CheckpointOptions& options, const std::optional<Lineage>& begun);
/// Of this run and older ones, as far as it can be; nothing of this run's may be under way. That it has begun stays noted.
void remove_leftovers(const std::filesystem::path& folder, std::int64_t generation);

/// Throws SupersededError if a newer run has saved into the folder.
void refuse_if_superseded(const std::filesystem::path& folder, const Lineage& own);

struct SkippedCheckpoint {
  std::string name;
  std::string why;
};
/// "step-000000000042-generation-1-round-1: why", one for each.
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

/// Makes the finished folder `temporary`, with its index, visible as the checkpoint of the index's step and run. All of it
/// is on disk before and after. Then removes what it replaces, leftovers, and all but the `keep_last` newest; what is in
/// the way of that is told once on stderr. Returns its path. Throws SupersededError if a newer run has saved into the
/// folder, before or meanwhile; then this one is not there, and nothing else was touched. What is left at `temporary`
/// is the caller's.
std::filesystem::path publish_checkpoint(const std::filesystem::path& temporary,
                                         const std::filesystem::path& folder, const CheckpointIndex& index,
                                         int keep_last);

}  // namespace muster::worker
