#include "rendezvous/core/round.hpp"

#include <algorithm>

namespace muster::rendezvous {
namespace {

template <class Which>
std::vector<NodeId> first_of(const std::vector<Seat>& seats, int at_most, Which which) {
  std::vector<NodeId> nodes;
  for (const Seat& seat : seats) {
    if (static_cast<int>(nodes.size()) >= at_most) break;
    if (which(seat)) nodes.push_back(seat.node);
  }
  return nodes;
}

}  // namespace

bool Round::waits_for_stop(const Seat& seat) { return !seat.gone && !seat.stopped && !seat.node.empty(); }

bool Round::waits_for_safe(const Seat& seat) {
  return waits_for_stop(seat) && !seat.safe && !seat.failed && !seat.succeeded;
}

Round::Round(State header, const std::vector<PlannedSeat>& plan) : state_(std::move(header)) {
  state_.seats.clear();
  state_.world_size = 0;
  for (const PlannedSeat& planned : plan) {
    Seat seat;
    seat.node = planned.offer.node;
    seat.first_rank = planned.first_rank;
    seat.local_workers = planned.offer.local_workers;
    seat.first_role_rank = planned.first_role_rank;
    seat.role_world_size = planned.role_world_size;
    state_.world_size += seat.local_workers;
    state_.seats.push_back(std::move(seat));
  }
  state_.master_addr = plan.front().offer.address;
  state_.master_port = plan.front().offer.store_port;
  index_all();
}

Round::Round(State state) : state_(std::move(state)) { index_all(); }

Round Round::adopted(int number, int nodes, int restart_count, int max_restarts) {
  State state;
  state.number = number;
  state.adopted = true;
  state.restart_count = restart_count;
  state.max_restarts = max_restarts;
  state.reason = "it was running when the daemon came back";
  state.seats.resize(static_cast<std::size_t>(nodes));
  return Round(std::move(state));
}

void Round::index_all() {
  for (std::size_t i = 0; i < state_.seats.size(); ++i) {
    const Seat& seat = state_.seats[i];
    if (!seat.node.empty()) index_.emplace(seat.node, static_cast<int>(i));
    if (seat.node.empty() && !seat.gone && !seat.expected.empty())
      expected_.emplace(seat.expected, static_cast<int>(i));
    count(state_.seats[i], +1);
  }
}

void Round::count(const Seat& seat, int sign) {
  if (seat.succeeded) succeeded_ += sign;
  if (seat.step >= 0) stepped_ += sign;
  if (waits_for_safe(seat)) to_be_safe_ += sign;
  if (waits_for_stop(seat)) to_be_stopped_ += sign;
  if (seat.node.empty() && !seat.gone) unclaimed_ += sign;
}

template <class Change>
void Round::change(const NodeId& node, Change&& apply) {
  const auto found = index_.find(node);
  if (found == index_.end()) return;
  Seat& seat = state_.seats[static_cast<std::size_t>(found->second)];
  count(seat, -1);
  apply(seat);
  count(seat, +1);
}

const Seat* Round::seat(const NodeId& node) const {
  const auto found = index_.find(node);
  return found == index_.end() ? nullptr : &state_.seats[static_cast<std::size_t>(found->second)];
}

Assignment Round::assignment(const NodeId& node) const {
  const int group_rank = index_.at(node);
  const Seat& seat = state_.seats[static_cast<std::size_t>(group_rank)];
  Assignment assignment;
  assignment.round = state_.number;
  assignment.group_rank = group_rank;
  assignment.group_world_size = size();
  assignment.first_rank = seat.first_rank;
  assignment.world_size = state_.world_size;
  assignment.first_role_rank = seat.first_role_rank;
  assignment.role_world_size = seat.role_world_size;
  assignment.restart_count = state_.restart_count;
  assignment.max_restarts = state_.max_restarts;
  assignment.master_addr = state_.master_addr;
  assignment.master_port = state_.master_port;
  assignment.reason = state_.reason;
  assignment.forming_took = state_.forming_took;
  if (size() > 1)
    assignment.next_node = state_.seats[static_cast<std::size_t>((group_rank + 1) % size())].node;
  return assignment;
}

bool Round::claim(int group_rank, const Resume& resume) {
  if (group_rank < 0 || group_rank >= size()) return false;
  Seat& seat = state_.seats[static_cast<std::size_t>(group_rank)];
  if (!seat.node.empty() || seat.gone || index_.count(resume.offer.node))
    return seat.node == resume.offer.node;
  count(seat, -1);
  seat.node = resume.offer.node;
  seat.first_rank = resume.first_rank;
  seat.local_workers = resume.offer.local_workers;
  state_.world_size += seat.local_workers;
  count(seat, +1);
  index_.emplace(seat.node, group_rank);
  expected_.erase(seat.expected);
  seat.expected.clear();
  if (const auto elsewhere = expected_.find(seat.node); elsewhere != expected_.end()) {
    state_.seats[static_cast<std::size_t>(elsewhere->second)].expected.clear();
    expected_.erase(elsewhere);
  }
  expect(resume.next_node, (group_rank + 1) % size());
  return true;
}

void Round::expect(const NodeId& node, int group_rank) {
  Seat& seat = state_.seats[static_cast<std::size_t>(group_rank)];
  const bool known = node.empty() || index_.contains(node) || expected_.contains(node);
  if (known || !seat.node.empty() || seat.gone || !seat.expected.empty()) return;
  seat.expected = node;
  expected_.emplace(node, group_rank);
}

std::vector<NodeId> Round::expected(int at_most) const {
  std::vector<NodeId> nodes;
  for (const auto& [node, group_rank] : expected_) {
    if (static_cast<int>(nodes.size()) >= at_most) break;
    nodes.push_back(node);
  }
  return nodes;
}

void Round::give_up(const NodeId& expected) {
  const auto found = expected_.find(expected);
  if (found == expected_.end()) return;
  Seat& seat = state_.seats[static_cast<std::size_t>(found->second)];
  count(seat, -1);
  seat.gone = true;
  count(seat, +1);
  expected_.erase(found);
}

void Round::give_up_unclaimed() {
  for (Seat& seat : state_.seats)
    if (seat.node.empty()) seat.gone = true;
  unclaimed_ = 0;
  expected_.clear();
}

void Round::mark_safe(const NodeId& node, std::int64_t step) {
  change(node, [&](Seat& seat) {
    seat.safe = true;
    seat.step = std::max(seat.step, step);
  });
}

void Round::mark_failed(const NodeId& node) {
  change(node, [](Seat& seat) { seat.failed = true; });
}

void Round::mark_succeeded(const NodeId& node) {
  change(node, [](Seat& seat) { seat.succeeded = true; });
}

void Round::mark_stopped(const NodeId& node) {
  change(node, [](Seat& seat) { seat.stopped = true; });
}

void Round::mark_gone(const NodeId& node) {
  change(node, [](Seat& seat) { seat.gone = true; });
}

void Round::mark_back(const NodeId& node) {
  change(node, [](Seat& seat) { seat.gone = false; });
}

void Round::note_step(const NodeId& node, std::int64_t step) {
  change(node, [&](Seat& seat) { seat.step = std::max(seat.step, step); });
}

std::vector<NodeId> Round::unsafe(int at_most) const {
  return first_of(state_.seats, at_most, waits_for_safe);
}

std::vector<NodeId> Round::unstopped(int at_most) const {
  return first_of(state_.seats, at_most, waits_for_stop);
}

}  // namespace muster::rendezvous
