// Checkpoints of a state that is spread over the ranks: each writes and reads its own rows, all at the same time.
//
// On disk it is the same kind of checkpoint as CheckpointStore's (checkpoint.hpp), with a file for each rank that
// writes; either class reads what the other wrote. What was saved by a world of one size is loaded by a world of any
// other size, whatever rows its ranks hold: rows are looked up, not files.
//
// A save may go on in the background, from a copy, while the ranks compute. It is there for everybody or for nobody:
// rank 0 publishes it once all parts are on disk.
//
//   ShardedCheckpoint checkpoint(folder, {}, group, slices);
//   const auto loaded = checkpoint.load_newest();
//   for (...) {
//     ...                                                   // a step
//     if (auto outcome = checkpoint.poll()) tell(*outcome);
//     if (time_to_save) {
//       if (auto outcome = checkpoint.finish()) tell(*outcome);
//       checkpoint.start_save(step, facts);
//     }
//   }
//   if (auto outcome = checkpoint.finish()) tell(*outcome);
//
// All ranks that save or load rows must see the same folder (a shared disk). Rank 0 publishes nothing of which it does
// not see every part. Every call is a collective one: all ranks make the same calls in the same order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/worker/checkpoint.hpp"
#include "muster/worker/process_group.hpp"

namespace muster::worker {

/// Rows [first_row, first_row + rows) of a tensor, in the caller's memory. A tensor without extents is one row.
struct TensorSlice {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape = {};  ///< of the whole tensor
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  bool saves = true;  ///< of the ranks that hold the same rows, one saves them; the others only load
  void* data = nullptr;

  std::size_t row_bytes() const;
  std::size_t bytes() const { return static_cast<std::size_t>(rows) * row_bytes(); }
};

/// All rows.
TensorSlice whole(const TensorRef& tensor);

struct SaveOutcome {
  std::int64_t step = 0;
  std::filesystem::path path;  ///< where it is; empty if it failed
  std::string error;           ///< "rank 2: what: why"; empty if it succeeded
  bool superseded =
      false;  ///< it failed since another run has gone on and saved (SupersededError): time to end
};

class ShardedCheckpoint {
 public:
  /// Throws std::invalid_argument, on every rank, that names the tensor and the ranks if they do not agree on its shape
  /// or type, if that is none (a negative extent), or if some row is saved by none of them or by two. The slices' memory
  /// and the group must outlive it.
  ShardedCheckpoint(std::filesystem::path folder, CheckpointOptions options, ProcessGroup& group,
                    std::vector<TensorSlice> slices);
  /// Waits for this rank's part of a save that was not finished; it stays unpublished.
  ~ShardedCheckpoint();
  ShardedCheckpoint(const ShardedCheckpoint&) = delete;
  ShardedCheckpoint& operator=(const ShardedCheckpoint&) = delete;

  /// As CheckpointStore::load_newest, and the same answer on every rank. Each part is compared with its checksum by one
  /// of the ranks that need it, while it is read. `why_not` says of a checkpoint's facts why this run
  /// cannot go on from it, or nothing; such a one is skipped too. Where there is nothing to load and several ranks save,
  /// a CheckpointError names those that do not see rank 0's folder: what they save could not be loaded.
  std::optional<LoadedCheckpoint> load_newest(const std::function<std::string(const Facts&)>& why_not = {});

  /// Of what this run saves; known after load_newest(), or the first save without one, on every rank.
  const Lineage& lineage() const;

  /// Copies the slices and returns; they may change from then on. No other save may be under way. `facts` count on
  /// rank 0. What goes wrong later is in the outcome, also that the ranks did not all name the same step. Throws
  /// CheckpointError on every rank if nothing was loaded before and the folder cannot be read.
  void start_save(std::int64_t step, const Facts& facts);
  /// A save is under way: poll() and finish() are of use.
  bool saving() const;
  /// Costs nothing when no save is under way, else at every fourth call an all-reduce of a few numbers that runs beside
  /// the caller's work.
  /// The outcome of the save once it is known; the same on every rank.
  std::optional<SaveOutcome> poll();
  /// Blocks until the save under way is done; nothing if there is none.
  std::optional<SaveOutcome> finish();

  /// Without a copy: blocks until it is on disk.
  SaveOutcome save(std::int64_t step, const Facts& facts);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::worker
