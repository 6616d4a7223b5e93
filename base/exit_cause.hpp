// How a process ended: one type from the agent's wait to the launcher's exit code.
#pragma once

#include <string>

namespace muster {

struct ExitCause {
  enum class Kind { exited, signalled, start_failed };

  Kind kind = Kind::exited;
  int value = 0;                   ///< exit code, signal number, or errno of the failed start
  bool stopped_by_muster = false;  ///< we had asked it to stop before it ended
  std::string evidence =
      {};  ///< what else is known: "its cgroup counted 1 OOM kill", a fault pattern; may be empty

  static ExitCause exited(int code) { return {Kind::exited, code}; }
  static ExitCause signalled(int signal_number) { return {Kind::signalled, signal_number}; }
  static ExitCause start_failed(int error_number) { return {Kind::start_failed, error_number}; }

  bool success() const { return kind == Kind::exited && value == 0; }

  /// As a shell would give it: the exit code, 128 + n for signal n, 127 (not found) or 126 for a failed
  /// start.
  int shell_code() const;

  /// "exited with code 3", "was killed by SIGKILL, not sent by muster", "could not be started: ...".
  std::string sentence() const;

  bool operator==(const ExitCause&) const = default;
};

/// Evidence of an end that was rehearsed.
inline constexpr const char* kRehearsed = "an operator sent it on purpose (musterctl chaos)";

/// From waitpid's status word.
ExitCause exit_cause_from_wait_status(int status);

/// "SIGKILL"; "signal 40" for one without a name.
std::string signal_name(int signal_number);

/// The number of "SIGTERM" or "TERM"; 0 if there is none of that name.
int signal_called(const std::string& name);

}  // namespace muster
