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
      std::count_if(charged_at_.begin(), charged_at_.end(), [&](Instant t) { return t > since; });
  return in_window < policy_.restart_window->count;
}

bool RestartLedger::startup_failure(const WorkerFailure& failure) const {
  return failure.cause.kind == ExitCause::Kind::exited && !failure.initialised &&
         std::chrono::milliseconds(failure.lived_ms) < policy_.startup_window;
}

Verdict RestartLedger::judge(const WorkerFailure& failure, Instant now) {
  if (failure.cause.kind == ExitCause::Kind::start_failed && !passes_with_time(failure.cause.value))
    return {false, "trying again would not help"};
  const bool at_start = startup_failure(failure);
  if (at_start && startup_code_ == failure.cause.value)
    return {false, fmt::format("twice in a row within {} of its start, so it is not started again ({} of {} "
                               "restarts used)",
                               human(policy_.startup_window), restarts(), policy_.max_restarts)};
  startup_code_ = at_start ? std::optional(failure.cause.value) : std::nullopt;
  return charge(short_failure(failure), now);
}

Verdict RestartLedger::judge_lost_node(const NodeId& node, Instant now) {
  startup_code_.reset();
  return charge(node + " (lost)", now);
}

Verdict RestartLedger::charge(std::string line, Instant now) {
  if (!budget_left(now)) {
    if (policy_.restart_window && restarts() < policy_.max_restarts)
      return {false, fmt::format("{} within {} are used", count_of(policy_.restart_window->count, "restart"),
                                 human(policy_.restart_window->per))};
    return {false, ""};
  }
  ++count_;
  lines_.push_back(std::move(line));
  if (lines_.size() > max_restart_lines) lines_.erase(lines_.begin());
  charged_at_.push_back(now);
  if (policy_.restart_window)
    while (charged_at_.front() <= now - policy_.restart_window->per) charged_at_.pop_front();
  else
    charged_at_.clear();
  return {true, fmt::format("restart {} of {}", restarts(), policy_.max_restarts)};
}

RestartLedger::State RestartLedger::state(Instant now) const {
  State state{count_, lines_, {}, startup_code_};
  for (const Instant at : charged_at_) state.ages.push_back(now - at);
  return state;
}

void RestartLedger::restore(const State& state, Instant now) {
  count_ = state.count;
  lines_ = state.lines;
  startup_code_ = state.startup_code;
  charged_at_.clear();
  for (const Duration age : state.ages) charged_at_.push_back(now - age);
}

void RestartLedger::adopt(int restarts_so_far) { count_ = std::max(count_, restarts_so_far); }

}  // namespace muster::rendezvous
