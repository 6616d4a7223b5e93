#include "rendezvous/core/restart_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "rendezvous/core/sentences.hpp"

namespace muster::rendezvous {
namespace {

/// Trying again may help for a lack of memory or processes, never for a program that is not there.
bool passes_with_time(int error_number) {
  return error_number == EAGAIN || error_number == ENOMEM || error_number == ETXTBSY ||
         error_number == EMFILE || error_number == ENFILE;
}

}  // namespace

bool RestartLedger::budget_left(Instant now) const {
  if (restarts() >= policy_.max_restarts) return false;
  if (!policy_.restart_window) return true;
  const Instant since = now - policy_.restart_window->per;
  const auto in_window =
      std::count_if(state_.charged_at.begin(), state_.charged_at.end(), [&](Instant t) { return t > since; });
  return in_window < policy_.restart_window->count;
}

/// What a failure at the start is known again by: the exit code, or the errno of a start that may pass,
/// negated.
std::optional<int> RestartLedger::startup_code(const WorkerFailure& failure) const {
  if (failure.cause.kind == ExitCause::Kind::start_failed) return -failure.cause.value;
  const bool at_start = failure.cause.kind == ExitCause::Kind::exited && !failure.initialised &&
                        std::chrono::milliseconds(failure.lived_ms) < policy_.startup_window;
  return at_start ? std::optional(failure.cause.value) : std::nullopt;
}

Verdict RestartLedger::judge(const WorkerFailure& failure, Instant now) {
  if (failure.cause.kind == ExitCause::Kind::start_failed && !passes_with_time(failure.cause.value))
    return {false, "trying again would not help"};
  if (failure.permanent) return {false, "it says itself that trying again would not help"};
  const std::optional<int> code = startup_code(failure);
  if (code && code == state_.startup_code)
    return {false, fmt::format("twice in a row within {} of its start, so it is not started again",
                               human(policy_.startup_window))};
  state_.startup_code = code;
  return charge(short_failure(failure), now);
}

Verdict RestartLedger::judge_missing_node(const NodeId& node, const char* how, Instant now) {
  state_.startup_code.reset();
  return charge(fmt::format("{} ({})", node, how), now);
}

Verdict RestartLedger::charge(std::string line, Instant now) {
  if (!budget_left(now)) {
    if (policy_.restart_window && restarts() < policy_.max_restarts)
      return {false, fmt::format("{} within {} are used", count_of(policy_.restart_window->count, "restart"),
                                 human(policy_.restart_window->per))};
    return {false, ""};
  }
  ++state_.count;
  state_.lines.push_back(std::move(line));
  if (state_.lines.size() > max_restart_lines) state_.lines.erase(state_.lines.begin());
  state_.charged_at.push_back(now);
  if (policy_.restart_window)
    while (state_.charged_at.front() <= now - policy_.restart_window->per) state_.charged_at.pop_front();
  else
    state_.charged_at.clear();
  return {true, fmt::format("restart {} of {}", restarts(), policy_.max_restarts)};
}

void RestartLedger::adopt(int restarts_so_far) {
  for (; state_.count < restarts_so_far; ++state_.count)
    if (state_.lines.size() < max_restart_lines) state_.lines.emplace_back("one before the daemon came back");
}

}  // namespace muster::rendezvous
