#include "rendezvous/protocol/policy_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster::rendezvous {
namespace {

constexpr const char* kNone = "none";
constexpr std::string_view kUnlimited = "unlimited";

std::string to_text(int value) { return std::to_string(value); }

std::string to_text(bool value) { return value ? "true" : "false"; }

std::string to_text(Duration value) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(value).count();
  return ms % 1000 == 0 ? fmt::format("{} s", ms / 1000) : fmt::format("{} ms", ms);
}

std::string to_text(const WindowedBudget& value) {
  const auto count = value.count == unlimited ? std::string(kUnlimited) : to_text(value.count);
  return fmt::format("{} per {}", count, to_text(value.per));
}

template <class T>
std::string to_text(const std::optional<T>& value) {
  return value ? to_text(*value) : kNone;
}

bool from_text(std::string_view text, int* out) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc{} && stop == text.data() + text.size();
}

bool from_text(std::string_view text, bool* out) {
  *out = text == "true";
  return *out || text == "false";
}

bool from_text(std::string_view text, Duration* out) {
  constexpr std::int64_t kMax = std::int64_t{400} * 24 * 3600 * 1000;
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return false;
  const auto unit = text.substr(space + 1);
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + space, number);
  if (error != std::errc{} || stop != text.data() + space || number < 0 || number > kMax) return false;
  if (unit == "ms") *out = std::chrono::milliseconds(number);
  if (unit == "s" && number <= kMax / 1000) *out = std::chrono::seconds(number);
  return unit == "ms" || (unit == "s" && number <= kMax / 1000);
}

bool from_text(std::string_view text, WindowedBudget* out) {
  constexpr std::string_view kPer = " per ";
  const auto per = text.find(kPer);
  if (per == std::string_view::npos) return false;
  const auto count = text.substr(0, per);
  if (count == kUnlimited)
    out->count = unlimited;
  else if (!from_text(count, &out->count))
    return false;
  return from_text(text.substr(per + kPer.size()), &out->per);
}

template <class T>
bool from_text(std::string_view text, std::optional<T>* out) {
  out->reset();
  return text == kNone || from_text(text, &out->emplace());
}

// Calls visit(name, field) for every field; taken apart so that a field that is forgotten does not compile.
template <class Policy, class Visit>
void each_field(Policy& policy, Visit visit) {
  auto& [min_nodes, max_nodes, max_restarts, restart_window, startup_window, membership_changes,
         undamped_changes, settle_window, settle_limit, damped_settle_cap, first_step_timeout, join_deadline,
         last_call, waiting_news_interval, drain_grace, stop_deadline, exit_barrier_limit, closed_grace,
         broken_grace, resume_window, cooldown_base, cooldown_cap, cooldown_memory, cooldown_refuse_after,
         allow_chaos] = policy;
  visit("minimum of nodes", min_nodes);
  visit("maximum of nodes", max_nodes);
  visit("max restarts", max_restarts);
  visit("restart window", restart_window);
  visit("start-up window", startup_window);
  visit("membership changes", membership_changes);
  visit("undamped changes", undamped_changes);
  visit("settle window", settle_window);
  visit("settle limit", settle_limit);
  visit("damped settle cap", damped_settle_cap);
  visit("first-step timeout", first_step_timeout);
  visit("join deadline", join_deadline);
  visit("last call", last_call);
  visit("waiting news interval", waiting_news_interval);
  visit("drain grace", drain_grace);
  visit("stop deadline", stop_deadline);
  visit("exit barrier limit", exit_barrier_limit);
  visit("closed-connection grace", closed_grace);
  visit("broken-connection grace", broken_grace);
  visit("resume window", resume_window);
  visit("cool-down base", cooldown_base);
  visit("cool-down cap", cooldown_cap);
  visit("cool-down memory", cooldown_memory);
  visit("cool-down refusals", cooldown_refuse_after);
  visit("allow_chaos", allow_chaos);
}

const PolicyValue* find(const std::vector<PolicyValue>& values, const std::string& name) {
  const auto at = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.name == name; });
  return at == values.end() ? nullptr : &*at;
}

}  // namespace

std::vector<PolicyValue> policy_values(const JobPolicy& policy) {
  std::vector<PolicyValue> values;
  each_field(policy, [&](const char* name, const auto& field) { values.push_back({name, to_text(field)}); });
  return values;
}

Result<JobPolicy> policy_from_values(const std::vector<PolicyValue>& values) {
  JobPolicy policy;
  std::size_t known = 0;
  std::string wrong;
  each_field(policy, [&](const char* name, auto& field) {
    const auto* value = find(values, name);
    if (value == nullptr) return;
    ++known;
    if (!from_text(value->value, &field)) wrong = fmt::format("{} cannot be '{}'", name, value->value);
  });
  if (!wrong.empty()) return Error{"job policy", wrong};
  if (find(values, kWorkerStoreSetting) != nullptr) ++known;
  if (known != values.size())
    return Error{"job policy", "it has a setting that is not known here, or one twice"};
  return validate(policy);
}

std::string differences(const std::vector<PolicyValue>& job, const std::vector<PolicyValue>& node) {
  std::vector<std::string> found;
  for (const auto& ours : job) {
    const auto* theirs = find(node, ours.name);
    const auto value = theirs == nullptr ? "not given" : theirs->value;
    if (ours.value != value)
      found.push_back(fmt::format("{} is {} in the job and {} on this node", ours.name, ours.value, value));
  }
  for (const auto& theirs : node)
    if (find(job, theirs.name) == nullptr)
      found.push_back(
          fmt::format("{} is not given in the job and {} on this node", theirs.name, theirs.value));
  return fmt::format("{}", fmt::join(found, "; "));
}

}  // namespace muster::rendezvous
