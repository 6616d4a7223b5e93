// This node's workers of one round: who runs, who ended how, who failed first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_cause.hpp"
#include "base/time.hpp"

namespace muster::agent {

struct GroupMember {
  enum class State { not_started, running, ended };

  State state = State::not_started;
  int pid = 0;
  Instant started_at{};
  Duration lived{};
  std::int64_t ended_unix_ms = 0;
  ExitCause cause;             ///< once it ended
  bool asked_to_stop = false;  ///< by a signal, or to save and leave
  bool signalled = false;
  std::vector<int> signals = {};    ///< that were sent to it
  std::vector<int> rehearsed = {};  ///< that an operator had sent to it
  bool main_ended = false;          ///< and left something that has the rest of the grace
  bool ended_unasked = false;       ///< before the first of the signals was sent
  bool asked_to_save = false;
  bool output_taken = false;           ///< or there will be none
  bool abandoned = false;              ///< survived SIGKILL; waited for no longer
  bool listens = false;                ///< can be asked to save
  bool safe = false;                   ///< has saved since it was asked
  bool done = false;                   ///< has said that its work is finished
  bool left_early = false;             ///< exited with 0 where that was not enough
  std::int64_t step = -1;              ///< the last it told
  std::optional<Instant> progress_at;  ///< when

  bool exited_well() const { return cause.success() && !left_early; }
};

/// When an exit with 0 is a success: always, or only of those that said that they were done or safe, or were asked to stop.
enum class SuccessNeeds { exit_0, exit_0_after_done };

class WorkerGroup {
 public:
  WorkerGroup() = default;
  explicit WorkerGroup(int size, SuccessNeeds needs = SuccessNeeds::exit_0)
      : needs_(needs), members_(static_cast<std::size_t>(size)) {}

  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<GroupMember>& members() const { return members_; }
  GroupMember& at(int local_rank) { return members_.at(static_cast<std::size_t>(local_rank)); }
  const GroupMember& at(int local_rank) const { return members_.at(static_cast<std::size_t>(local_rank)); }

  void started(int local_rank, int pid, Instant now);
  /// Marks the cause as stopped_by_muster if the worker had been asked to stop, and a signal that killed it was one of
  /// ours; says in its evidence that the worker left early. A second end is ignored.
  void ended(int local_rank, ExitCause cause, std::int64_t unix_time_ms, Instant now);

  /// Local ranks of those whose main process lives and is not given up.
  std::vector<int> running() const;
  /// Nothing runs, nothing more will be read, nothing more will be started.
  bool over() const;
  bool all_succeeded() const;
  /// By order of events; those that had been asked to stop are none.
  std::optional<int> first_failure() const { return first_failure_; }
  bool any_saved() const;
  std::vector<std::int64_t> steps() const;  ///< of those that told one

 private:
  SuccessNeeds needs_ = SuccessNeeds::exit_0;
  std::vector<GroupMember> members_;
  std::optional<int> first_failure_;
  bool start_failed_ = false;
};

}  // namespace muster::agent
