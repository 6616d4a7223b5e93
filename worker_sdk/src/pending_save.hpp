// A save that several ranks make together, step by step: each writes its part in a thread of its own, then rank 0
// publishes the checkpoint in one of its own, if it finds all of them; the ranks agree on how far they are by
// all-reduces that the caller's thread makes, so that the order of the group's calls is the same everywhere.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "muster/worker/process_group.hpp"
#include "muster/worker/sharded_checkpoint.hpp"
#include "worker_sdk/src/checkpoint_index.hpp"
#include "worker_sdk/src/pace.hpp"

namespace muster::worker {

/// How much the writer's thread may take from those that compute.
enum class Urgency : std::uint8_t { background, somebody_waits };

struct SaveTask {
  std::filesystem::path folder;
  std::filesystem::path temporary;  ///< the same on every rank
  int keep_last = 3;
  CheckpointIndex index;            ///< all but the parts' sizes and checksums
  std::optional<std::size_t> part;  ///< the one that this rank writes
  std::vector<TensorRef> tensors;   ///< what it has; alive and unchanged until the parts are written
  Urgency urgency = Urgency::background;
  double share = 1;  ///< of the writer's time in the background, until finish() is called
};

class PendingSave {
 public:
  PendingSave(ProcessGroup& group, SaveTask task);
  /// Blocks while this rank still writes, which it does without a rest from now on.
  ~PendingSave();
  PendingSave(const PendingSave&) = delete;
  PendingSave& operator=(const PendingSave&) = delete;

  /// Both collective. The outcome once it is known.
  std::optional<SaveOutcome> poll();
  SaveOutcome finish();

 private:
  enum class Phase : std::uint8_t { writing, publishing };
  /// What a thread has done.
  struct Done {
    IndexedPart part;
    std::string error;  ///< empty: it went well; else as all ranks are told, with the rank
    bool superseded = false;
  };

  Done write_part();
  std::string of_this_rank(const std::string& error) const;
  Done failure(const CheckpointError& error) const;
  Done publish() const;
  void ask();
  std::optional<SaveOutcome> take_answer();
  std::optional<SaveOutcome> advance();
  std::string different_steps() const;
  std::string first_error();
  void remove_what_was_written();
  SaveOutcome failed(const std::string& error, bool superseded = false);

  ProcessGroup& group_;
  SaveTask task_;
  Pace pace_;
  Phase phase_ = Phase::writing;
  std::future<Done> job_;     ///< while it runs
  std::optional<Done> done_;  ///< of this phase
  std::vector<int> writers_;  ///< the ranks that wrote the parts
  std::shared_ptr<std::vector<std::int64_t>> report_;
  std::shared_ptr<Work> answer_;  ///< an all-reduce of `report_` under way
  int polls_ = 0;                 ///< the same on every rank
};

}  // namespace muster::worker
