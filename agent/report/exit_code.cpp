#include <cerrno>
#include <csignal>

#include "agent/report/report.hpp"

namespace muster::agent {

namespace {

/// What was missing was ours to get: a process, memory, descriptors, room for its files. The program may be as it should.
bool launchers_own(const ExitCause& cause) {
  if (cause.kind != ExitCause::Kind::start_failed) return false;
  switch (cause.value) {
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EROFS:
      return true;
    default:
      return false;
  }
}

}  // namespace

int exit_code_of(const rendezvous::Outcome& outcome, int stop_signal) {
  using rendezvous::OutcomeKind;
  switch (outcome.kind) {
    case OutcomeKind::succeeded:
      return 0;
    case OutcomeKind::failed: {
      if (!outcome.first_failure) return kLauncherFailedExitCode;
      if (launchers_own(outcome.first_failure->cause)) return kLauncherFailedExitCode;
      const int code = outcome.first_failure->cause.shell_code();
      return code == 0 ? 1 : code;  // a failed job never looks like a success
    }
    case OutcomeKind::stopped:
    case OutcomeKind::preempted:
      if (stop_signal > 0) return 128 + stop_signal;
      return 128 + (outcome.stop_signal > 0 ? outcome.stop_signal : SIGTERM);
    case OutcomeKind::rendezvous_failed:
    case OutcomeKind::node_lost:
      return kRendezvousFailedExitCode;
  }
  return kLauncherFailedExitCode;
}

int exit_code_of(const JobReport& report) {
  return report.survivors.empty() ? exit_code_of(report.outcome, report.stop_signal) : kUncleanExitCode;
}

}  // namespace muster::agent
