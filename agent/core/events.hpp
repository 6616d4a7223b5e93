// What the supervisor hears (events) and what it wants done (effects), as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_cause.hpp"
#include "base/time.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace muster::agent {

// ---- events --------------------------------------------------------------------------------------------

/// The agent begins: comes once, first.
struct Begin {};

/// Answers to OpenStore.
struct StoreOpened {
  std::uint16_t port = 0;
};
struct StoreFailed {
  std::string why;
};

struct FromDaemon {
  rendezvous::DaemonMessage message;
};

/// Answers to StartWorkers, one for each worker in order of local rank. After a failed start (WorkerEnded
/// with ExitCause::start_failed) the remaining ones are not tried.
struct WorkerStarted {
  int local_rank = 0;
  int pid = 0;
  Instant at{};  ///< many start in one go, and the last long after the first
};

/// Its main process ended after one of our signals, and what that had started has the rest of the grace.
struct MainEnded {
  int local_rank = 0;
};

/// That outlived the grace, and is killed now. `who`: "pid 4712 (sleep 600)", what there is of it.
struct RestKilled {
  int local_rank = 0;
  std::string who;
};

/// It is over: its main process ended, and what that left of its group was killed or, if the worker had been asked to
/// stop, had the rest of the grace. `cause` and time are the main process's.
struct WorkerEnded {
  int local_rank = 0;
  ExitCause cause;
  std::int64_t unix_time_ms = 0;
  bool unasked = false;  ///< it had ended before the first signal was sent to it
};

/// Follows each WorkerEnded in bounded time: all that the worker wrote has been taken.
struct WorkerOutput {
  int local_rank = 0;
  bool initialised = false;  ///< it may have joined its group: somebody had opened the round's store
  bool permanent = false;    ///< its error file says that trying again cannot help
  std::string message;       ///< of its error file; may be empty
  std::vector<std::string> last_lines;
  std::string log_path;
};

/// Answer to DescribeWorker.
struct WorkerState {
  int local_rank = 0;
  std::string text;  ///< "pid 4711 is in state D (uninterruptible sleep), waiting in nfs_wait"
};

/// Answer to SweepGroup. `survivors`: one sentence for each process that could not be killed.
struct GroupSwept {
  std::vector<std::string> survivors;
};

/// Somebody sent this signal to the agent.
struct StopSignal {
  int signal_number = 0;
  bool parent_ended = false;  ///< the kernel did, since the process that started the agent has ended
};

/// Somebody warns of what will come (SIGUSR1, SIGUSR2 of a batch system): for the workers, if they care.
struct WarningSignal {
  int signal_number = 0;
};

/// Answer to PassOnSignal.
struct SignalPassedOn {
  int signal_number = 0;
  int told = 0;
  int spared = 0;  ///< workers without a handler: it would have ended them
};

/// From a worker that speaks with its agent: it can be asked to save; it has; it goes on.
struct WorkerListens {
  int local_rank = 0;
};
/// It closed its end: it can be asked no longer.
struct WorkerDeaf {
  int local_rank = 0;
};
struct WorkerSafe {
  int local_rank = 0;
  std::int64_t step = -1;
};
/// Its work is finished: it will exit with 0.
struct WorkerDone {
  int local_rank = 0;
};
struct WorkerProgress {
  int local_rank = 0;
  std::int64_t step = -1;
};

/// Time passed: wake_at() is here.
struct Tick {};

using Event =
    std::variant<Begin, StoreOpened, StoreFailed, FromDaemon, WorkerStarted, MainEnded, RestKilled,
                 WorkerEnded, WorkerOutput, WorkerState, GroupSwept, StopSignal, WarningSignal,
                 SignalPassedOn, WorkerListens, WorkerDeaf, WorkerSafe, WorkerDone, WorkerProgress, Tick>;

// ---- effects -------------------------------------------------------------------------------------------

struct SendToDaemon {
  rendezvous::AgentMessage message;
};

struct StartWorkers {
  rendezvous::Assignment assignment;
};

/// The first signal goes to the worker's main process alone, so that its helpers (data loaders) live as long
/// as it needs them for saving. What it leaves behind (a shell that died and left its program) gets the signal then.
enum class SignalTarget { main_process, whole_group };

struct SignalWorker {
  int local_rank = 0;
  int signal_number = 0;
  SignalTarget target = SignalTarget::main_process;
};

/// To the main process of each running worker that has a handler for it; the shell answers SignalPassedOn.
struct PassOnSignal {
  int signal_number = 0;
};

/// A fresh, empty worker store; the shell answers StoreOpened or StoreFailed. `number` counts up from 1.
struct OpenStore {
  int number = 0;
};
struct CloseStore {
  int number = 0;
};

/// SIGKILL did not end this worker in time: what does the kernel say about it?
struct DescribeWorker {
  int local_rank = 0;
};

/// All main processes ended: end what they left behind, within `limit`.
struct SweepGroup {
  Duration limit{};
};

/// To a worker that listens: save, then say so.
struct AskToSave {
  int local_rank = 0;
  Duration grace{};
};

/// An operator rehearses a fault: to the worker's main process alone, as what kills it in earnest would; it counts as
/// none of our own signals. Without a worker: to this process, once all that was said before is out.
struct InjectFault {
  std::optional<int> local_rank;
  int signal_number = 0;
};

/// A line for the user.
struct Say {
  std::string sentence;
};

/// The last effect.
struct Finish {
  rendezvous::Outcome outcome;
  int stop_signal = 0;                      ///< the signal from outside that ended it here, or 0
  std::vector<std::string> survivors = {};  ///< a sentence for each process that outlived SIGKILL
  Duration stop_grace{};                    ///< what that signal gave, the hurry of later ones counted
  int stop_signals = 0;                     ///< how many came
};

using Effect = std::variant<SendToDaemon, StartWorkers, SignalWorker, PassOnSignal, OpenStore, CloseStore,
                            DescribeWorker, SweepGroup, AskToSave, InjectFault, Say, Finish>;

}  // namespace muster::agent
