#include "rendezvous/core/rehearsal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <vector>

#include "base/endpoint.hpp"
#include "base/exit_cause.hpp"

namespace muster::rendezvous {
namespace {

/// A launcher that is stopped or crashes in other ways is an accident of its own; these two are what a user's cluster does
/// to it.
const std::vector<int>& allowed(Victim victim) {
  static const std::vector<int> of_worker = {SIGKILL, SIGTERM, SIGSTOP, SIGCONT, SIGABRT, SIGSEGV, SIGINT};
  static const std::vector<int> of_agent = {SIGKILL, SIGTERM};
  return victim == Victim::worker ? of_worker : of_agent;
}

Error refusal(Victim victim, const std::string& given) {
  std::vector<std::string> names;
  for (const int number : allowed(victim)) names.push_back(signal_name(number));
  const std::string last = names.back();
  names.pop_back();
  return {given, fmt::format("a {} is sent {} or {} only", victim == Victim::worker ? "worker" : "launcher",
                             fmt::join(names, ", "), last)};
}

}  // namespace

Result<int> rehearsal_signal(Victim victim, const std::string& text) {
  std::string name = text;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return std::toupper(letter); });
  int number = signal_called(name);
  if (const auto given = parse_integer(text, 1, 64); given) number = static_cast<int>(*given);
  if (number == 0 || wrong_rehearsal_signal(victim, number)) return refusal(victim, "'" + text + "'");
  return number;
}

std::optional<Error> wrong_rehearsal_signal(Victim victim, int signal_number) {
  const auto& known = allowed(victim);
  if (std::find(known.begin(), known.end(), signal_number) != known.end()) return std::nullopt;
  return refusal(victim, signal_name(signal_number));
}

}  // namespace muster::rendezvous
