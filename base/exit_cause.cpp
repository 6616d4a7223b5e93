#include "base/exit_cause.hpp"

#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.hpp"

namespace muster {

int ExitCause::shell_code() const {
  switch (kind) {
    case Kind::exited:
      return value;
    case Kind::signalled:
      return 128 + value;
    case Kind::start_failed:
      return value == ENOENT ? 127 : 126;
  }
  return 1;
}

std::string ExitCause::sentence() const {
  std::string text;
  switch (kind) {
    case Kind::exited:
      text = "exited with code " + std::to_string(value);
      break;
    case Kind::signalled:
      text = "was killed by " + signal_name(value) +
             (stopped_by_muster ? ", sent by muster" : ", not sent by muster");
      break;
    case Kind::start_failed:
      text = "could not be started: " + errno_text(value);
      break;
  }
  if (stopped_by_muster && kind == Kind::exited) text += " after muster asked it to stop";
  if (!evidence.empty()) text += "; " + evidence;
  return text;
}

ExitCause exit_cause_from_wait_status(int status) {
  if (WIFSIGNALED(status)) return ExitCause::signalled(WTERMSIG(status));
  return ExitCause::exited(WEXITSTATUS(status));
}

std::string signal_name(int signal_number) {
  const char* name = sigabbrev_np(signal_number);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal_number);
}

int signal_called(const std::string& name) {
  const std::string bare = name.starts_with("SIG") ? name.substr(3) : name;
  for (int number = 1; number < NSIG; ++number) {
    const char* known = sigabbrev_np(number);
    if (known && bare == known) return number;
  }
  return 0;
}

}  // namespace muster
