// How the job ended, for people (the last screen), for programs (status.json) and for the caller (exit code).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/exit_cause.hpp"
#include "base/time.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace muster::agent {

/// One worker process of this node, in one round.
struct WorkerRecord {
  int rank = -1;
  int local_rank = -1;
  int pid = 0;
  int round = 0;
  std::optional<ExitCause> end;  ///< none while it runs, or if its end was never seen
  std::int64_t started_unix_ms = 0;
  std::int64_t ended_unix_ms = 0;
  std::string log_path;                  ///< of its stderr; may be empty
  std::int64_t last_output_unix_ms = 0;  ///< when it printed last, or was started; 0: not known
  std::uint64_t lost_log_bytes = 0;      ///< that did not reach its files
  std::string killed_rest = {};  ///< what it left behind and the grace did not end: "pid 4712 (sleep 600)"
};

/// A round that did not get on, as far as the worker store could tell.
struct Stall {
  int round = 0;
  std::int64_t unix_ms = 0;
  std::string sentence;
  std::int64_t over_unix_ms = 0;  ///< when it got on; 0: it has not
};

/// Before a round, on this node: {"stop", 120} took 120 ms.
struct PhaseTime {
  std::string name;
  double ms = 0;
};

/// A round that this node was in.
struct RoundTimes {
  int round = 0;
  int nodes = 0;
  int world_size = 0;
  std::string reason;
  std::vector<PhaseTime> phases;
};

struct JobReport {
  std::string run_id;
  std::string node;
  rendezvous::Outcome outcome;
  int stop_signal = 0;                   ///< the signal to the launcher that ended the job; 0: none
  std::int64_t stop_signal_unix_ms = 0;  ///< when it came; 0: not known
  Duration stop_grace{};                 ///< what workers had to leave when it came
  int stop_signals = 0;                  ///< how many came; the second one shortens the grace
  std::vector<std::string>
      survivors;  ///< sentences: what of the job outlived SIGKILL and is still on this node
  std::vector<WorkerRecord> workers;  ///< of the newest rounds, in the order of their start
  int workers_left_out = 0;           ///< of older rounds
  std::vector<RoundTimes> rounds;     ///< the newest
  std::vector<Stall> stalls;          ///< the last ones that were said
  std::string status_path;
  std::string log_folder;
  std::string python = {};               ///< the interpreter that the workers were given; empty: none
  std::uint64_t lost_console_lines = 0;  ///< that were left out on the console
};

/// The last thing on the screen. A failed job: under 30 lines, with the first failure, how it ended, its last
/// lines, the consequences, the restarts used, what to do. A stopped one: the same for what hung or had to be
/// killed. Anything else: one line. Its first line says what happened and what to do next. Ends with a newline; each
/// line of ours at the left margin begins with "muster: ".
std::string render_report(const JobReport& report);

/// The same for programs: every worker with how, when and by whom it ended. Grammar in docs/status-json.md.
std::string status_json(const JobReport& report);

/// Under its name the file is whole or absent, never half-written.
Result<void> write_status_file(const std::filesystem::path& path, const std::string& text);

/// What a worker wrote to TORCHELASTIC_ERROR_FILE.
struct ErrorFile {
  std::string message;     ///< its traceback, or else its message
  bool permanent = false;  ///< it says that trying again cannot help
  bool operator==(const ErrorFile&) const = default;
};

/// Nothing if the file is missing, too long (over 1 MiB) or not in that format. Of a long message the end is kept.
std::optional<ErrorFile> read_error_file(const std::filesystem::path& path);

/// The table is in docs/exit-codes.md. `stop_signal`: the signal to the launcher that ended the job, 0 if
/// none.
int exit_code_of(const rendezvous::Outcome& outcome, int stop_signal = 0);

/// That of this node's launcher: also kUncleanExitCode.
int exit_code_of(const JobReport& report);

/// Something of the job outlived SIGKILL and is still on this node; the report names it.
inline constexpr int kUncleanExitCode = 71;           // EX_OSERR
inline constexpr int kRendezvousFailedExitCode = 75;  // EX_TEMPFAIL: the same command may work later
inline constexpr int kLauncherFailedExitCode = 70;    // EX_SOFTWARE: muster itself could not do its work
inline constexpr int kUsageExitCode = 2;

}  // namespace muster::agent
