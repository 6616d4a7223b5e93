// Nodes that come back after a broken connection, and a daemon that comes back without its journal: nothing
// restarts because of either.
#include <fmt/format.h>

#include <algorithm>

#include "rendezvous/core/job.hpp"

namespace muster::rendezvous {
namespace {

bool sound(const NodeId& node, const Resume& resume) {
  constexpr int last_sane_round = 1 << 30;
  return resume.offer.node == node && resume.offer.local_workers >= 1 &&
         resume.offer.local_workers <= max_local_workers && resume.round >= 1 &&
         resume.round <= last_sane_round && resume.group_world_size >= 1 &&
         resume.group_world_size <= max_nodes_limit && resume.group_rank >= 0 &&
         resume.group_rank < resume.group_world_size && resume.first_rank >= 0 && resume.restart_count >= 0;
}

}  // namespace

void Job::hear(const NodeId& node, const Resume& resume) {
  if (!sound(node, resume))
    return tell(node, Refused{RefusalCode::malformed, "a Resume of " + node + " makes no sense"});
  const Member* member = members_.find(node);
  if (member && member->offer.incarnation != resume.offer.incarnation) {
    lose(node, "its agent was started anew");
    if (over()) return tell(node, JobEnded{outcome_});
  }
  if (resume.round > last_round_) {
    if (round_is_vouched_for())
      learn(resume.round, resume.restart_count);
    else
      adopt(resume);
  }
  if (live(resume.round)) {
    const bool its_place =
        round_->state().adopted ? round_->claim(resume.group_rank, resume) : round_->seat(node) != nullptr;
    if (its_place && !round_->seat(node)->stopped) {
      members_.join(resume.offer, Stand::seated);
      round_->mark_back(node);
      places_.remember(node, {round_->group_rank(node), round_->number()});
      remind(node);
      return meet_neighbour(resume.next_node);
    }
  }
  member = members_.find(node);
  if (member && member->stand == Stand::seated && !live(resume.round)) {
    lose(node, fmt::format("it came back from round {}", resume.round));
    if (over()) return tell(node, JobEnded{outcome_});
  }
  members_.join(resume.offer, Stand::between);
  tell(node, StopWorkers{resume.round, fmt::format("round {} ended while {} was away", resume.round, node)});
}

/// What the node may have missed while it was away.
void Job::remind(const NodeId& node) {
  if (phase_ == Phase::draining && round_->waits_for_safe(*round_->seat(node)))
    tell(node, Drain{round_->number(), std::max(ending_.deadline - now_, Duration::zero()), ending_.reason});
  if (phase_ != Phase::stopping) return;
  ending_.deadline = std::max(ending_.deadline, now_ + policy_.stop_deadline);
  tell(node, StopWorkers{round_->number(), ending_.reason});
}

/// A node of the round that is named by another, and has joined already without its place: its workers have stopped,
/// or it was started anew. It knows.
void Job::meet_neighbour(const NodeId& node) {
  const Member* member = members_.find(node);
  if (member && member->connected() && member->stand == Stand::ready && round_->expects(node))
    ask_for_place(node);
}

void Job::ask_for_place(const NodeId& node) { tell(node, StopWorkers{round_->number(), ""}); }

/// Of an adopted round: it joins and has no place there. False if the job is over with that.
bool Job::lose_expected(const NodeId& node, int last_round) {
  std::string why = "its agent was started anew";
  if (last_round > round_->number()) why = fmt::format("it was in round {} since", last_round);
  if (last_round > 0 && last_round < round_->number())
    why = fmt::format("round {} never reached it", round_->number());
  if (members_.find(node)) members_.remove(node);
  round_->give_up(node);
  if (round_->unclaimed() == 0) unclaimed_until_.reset();
  cooldown_.strike(node, now_);
  gone(node, "lost", fmt::format("{} was lost ({})", node, why), staying() + 1);
  return !over();
}

/// What a node says of an adopted round in this time it may have said already to the daemon that is gone.
bool Job::may_be_old_news() const {
  return round_->state().adopted && now_ < running_since_ + policy_.resume_window;
}

/// Told until somebody says what began it.
std::string Job::unknown_cause() const {
  return fmt::format("round {} was ending when the daemon came back", round_->number());
}

bool Job::cause_is_unknown() const {
  return phase_ == Phase::stopping && round_->state().adopted && !ending_.charged &&
         ending_.reason.starts_with(unknown_cause());
}

/// What came after it stays.
void Job::name_cause(const std::string& reason, Cost cost) {
  ending_.reason.replace(0, unknown_cause().size(), reason);
  ending_.charged = cost == Cost::restart;
}

/// Somebody of the live round is here. Then it is not given up for a newer one of which a stranger tells:
/// that one has lost its members to this daemon.
bool Job::round_is_vouched_for() const {
  if (!round_) return false;
  const auto& seats = round_->state().seats;
  return std::any_of(seats.begin(), seats.end(), [&](const Seat& seat) {
    const Member* member = members_.find(seat.node);
    return member && member->stand == Stand::seated && member->connected();
  });
}

/// There were rounds, and restarts, that this job does not know of: it counts on from them.
void Job::learn(int last_round, int restarts) {
  constexpr int last_sane_round = 1 << 30;
  if (last_round <= std::max(last_round_, heard_round_) || last_round > last_sane_round) return;
  heard_round_ = last_round;
  ledger_.adopt(std::min(restarts, policy_.max_restarts));
}

/// A round that this job does not know is the newest: the journal is missing or has lost its end, and the
/// agents know better. The other nodes of that round have the resume window to say so too.
void Job::adopt(const Resume& resume) {
  std::vector<NodeId> seated;
  for (const auto& [node, member] : members_.all())
    if (member.stand == Stand::seated) seated.push_back(node);
  for (const NodeId& node : seated) {
    if (members_.find(node)->connected())
      tell(node, StopWorkers{round_->number(), fmt::format("round {} is newer", resume.round)});
    members_.set_stand(node, Stand::between);
  }
  learn(resume.round, resume.restart_count);
  last_round_ = resume.round;
  round_ = Round::adopted(resume.round, resume.group_world_size, resume.restart_count, policy_.max_restarts);
  gathering_ = {};
  growth_.reset();
  ending_ = {};
  first_success_.reset();
  unclaimed_until_ = now_ + policy_.resume_window;
  running_since_ = now_;
  enter(Phase::running);
}

}  // namespace muster::rendezvous
