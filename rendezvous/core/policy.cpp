#include "rendezvous/core/policy.hpp"

#include <fmt/format.h>

namespace muster::rendezvous {
namespace {

constexpr Duration longest_wait = std::chrono::hours(24 * 366);

std::optional<Error> wrong_number(const char* what, long value, long low, long high) {
  if (value >= low && value <= high) return std::nullopt;
  return Error{what, fmt::format("{} is not within {} to {}", value, low, high)};
}

std::optional<Error> wrong_duration(const char* what, Duration value, Duration low) {
  if (value >= low && value <= longest_wait) return std::nullopt;
  return Error{what,
               fmt::format("{} is not within {} and {}", human(value), human(low), human(longest_wait))};
}

std::optional<Error> wrong_window(const char* what, const WindowedBudget& window) {
  if (window.count != unlimited)
    if (auto error = wrong_number(what, window.count, 0, max_restarts_limit)) return error;
  return wrong_duration(what, window.per, std::chrono::seconds(1));
}

std::optional<Error> wrong_counts(const JobPolicy& p) {
  if (auto e = wrong_number("minimum of nodes", p.min_nodes, 1, max_nodes_limit)) return e;
  if (auto e = wrong_number("maximum of nodes", p.max_nodes, p.min_nodes, max_nodes_limit)) return e;
  if (auto e = wrong_number("max restarts", p.max_restarts, 0, max_restarts_limit)) return e;
  if (auto e = wrong_number("undamped changes", p.undamped_changes, 0, max_restarts_limit)) return e;
  if (auto e = wrong_number("cool-down refusals", p.cooldown_refuse_after, 2, max_restarts_limit)) return e;
  if (auto e = wrong_window("membership changes", p.membership_changes)) return e;
  return p.restart_window ? wrong_window("restart window", *p.restart_window) : std::nullopt;
}

}  // namespace

Result<JobPolicy> validate(JobPolicy policy) {
  if (auto error = wrong_counts(policy)) return *error;
  struct Field {
    const char* what;
    Duration value;
    Duration low;
  };
  const Duration none{};
  const Duration one_ms = std::chrono::milliseconds(1);
  for (const Field& field :
       {Field{"start-up window", policy.startup_window, none},
        Field{"settle window", policy.settle_window, none},
        Field{"settle limit", policy.settle_limit, policy.settle_window},
        Field{"damped settle cap", policy.damped_settle_cap, policy.settle_window},
        Field{"first-step timeout", policy.first_step_timeout, none},
        Field{"join deadline", policy.join_deadline, one_ms}, Field{"last call", policy.last_call, none},
        Field{"waiting news interval", policy.waiting_news_interval, one_ms},
        Field{"drain grace", policy.drain_grace, none}, Field{"stop deadline", policy.stop_deadline, one_ms},
        Field{"exit barrier limit", policy.exit_barrier_limit.value_or(none), none},
        Field{"closed-connection grace", policy.closed_grace, none},
        Field{"broken-connection grace", policy.broken_grace, none},
        Field{"resume window", policy.resume_window, none},
        Field{"cool-down base", policy.cooldown_base, none},
        Field{"cool-down cap", policy.cooldown_cap, policy.cooldown_base},
        Field{"cool-down memory", policy.cooldown_memory, none}})
    if (auto error = wrong_duration(field.what, field.value, field.low)) return *error;
  return policy;
}

}  // namespace muster::rendezvous
