#include "rendezvous/core/ending.hpp"

#include <chrono>
#include <csignal>

namespace muster::rendezvous {

namespace {

/// What the network, and machines that are busy, may make of two ends that follow one another.
constexpr Duration kMoment = std::chrono::milliseconds(100);

bool was_killed(const WorkerFailure& failure) {
  return failure.cause.kind == ExitCause::Kind::signalled && failure.cause.value != SIGABRT;
}

}  // namespace

bool comes_before(const Suspect& a, const Suspect& b) {
  const bool at_once = a.at - b.at < kMoment && b.at - a.at < kMoment;
  if (at_once && was_killed(a.failure) != was_killed(b.failure)) return was_killed(a.failure);
  return a.at < b.at;
}

std::string Ending::reason() const {
  std::string text = cause;
  for (const std::string& sentence : then) text += "; then " + sentence;
  return text;
}

}  // namespace muster::rendezvous
