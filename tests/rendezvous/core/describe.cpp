#include "tests/rendezvous/core/describe.hpp"

#include <fmt/format.h>

namespace muster::rendezvous {
namespace {

template <class... Case>
struct Cases : Case... {
  using Case::operator()...;
};
template <class... Case>
Cases(Case...) -> Cases<Case...>;

std::string kind_text(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::succeeded:
      return "succeeded";
    case OutcomeKind::failed:
      return "failed";
    case OutcomeKind::stopped:
      return "stopped";
    case OutcomeKind::preempted:
      return "preempted";
    case OutcomeKind::node_lost:
      return "node lost";
    case OutcomeKind::rendezvous_failed:
      break;
  }
  return "rendezvous failed";
}

std::string assignment_text(const Assignment& m) {
  return fmt::format(
      "assignment: round {}, node {} of {}, ranks from {} of {}, master {}:{}, restart {} of {}; {}", m.round,
      m.group_rank, m.group_world_size, m.first_rank, m.world_size, m.master_addr, m.master_port,
      m.restart_count, m.max_restarts, m.reason);
}

}  // namespace

std::string describe(const DaemonMessage& message) {
  return std::visit(Cases{[](const Waiting& m) { return "waiting: " + m.reason; },
                          [](const Assignment& m) { return assignment_text(m); },
                          [](const Drain& m) {
                            return fmt::format("drain round {}, {}: {}", m.round, human(m.grace), m.reason);
                          },
                          [](const StopWorkers& m) {
                            if (m.reason.empty()) return fmt::format("what of round {}?", m.round);
                            return fmt::format("stop round {}: {}", m.round, m.reason);
                          },
                          [](const JobEnded& m) {
                            return fmt::format("job ended, {}: {}", kind_text(m.outcome.kind),
                                               m.outcome.reason);
                          },
                          [](const Refused& m) { return "refused: " + m.reason; },
                          [](const Inject& m) {
                            return fmt::format("inject {} into {}", signal_name(m.signal_number),
                                               m.rank ? fmt::format("rank {}", *m.rank) : "the launcher");
                          }},
                    message);
}

}  // namespace muster::rendezvous
