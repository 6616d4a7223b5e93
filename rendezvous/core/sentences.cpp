#include "rendezvous/core/sentences.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster::rendezvous {

std::string count_of(int n, const std::string& noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string names_of(const std::vector<NodeId>& some, int total) {
  std::string text;
  const int shown = std::min({static_cast<int>(some.size()), max_names_in_sentence, total});
  for (int i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == total ? " and " : ", ";
    text += some[static_cast<std::size_t>(i)];
  }
  if (total > shown) text += fmt::format(" and {} more", total - shown);
  return text;
}

std::string range_of(int low, int high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
}

std::string nodes_of(int low, int high) {
  return low == high ? count_of(high, "node") : range_of(low, high) + " nodes";
}

std::string how_it_ended(const ExitCause& cause) {
  std::string text;
  switch (cause.kind) {
    case ExitCause::Kind::exited:
      text = fmt::format("exited with code {}", cause.value);
      break;
    case ExitCause::Kind::signalled:
      text = "was killed by " + signal_name(cause.value);
      break;
    case ExitCause::Kind::start_failed:
      return cause.sentence();
  }
  return cause.evidence.empty() ? text : text + "; " + cause.evidence;
}

std::string what_failed(const WorkerFailure& failure) {
  return fmt::format("rank {} on {} {}", failure.rank, failure.node, how_it_ended(failure.cause));
}

std::string short_failure(const WorkerFailure& failure) {
  const ExitCause& cause = failure.cause;
  switch (cause.kind) {
    case ExitCause::Kind::exited:
      return fmt::format("rank {} (exit {})", failure.rank, cause.value);
    case ExitCause::Kind::signalled:
      return fmt::format("rank {} ({})", failure.rank, signal_name(cause.value));
    case ExitCause::Kind::start_failed:
      break;
  }
  return fmt::format("rank {} (did not start)", failure.rank);
}

}  // namespace muster::rendezvous
