// Nodes that come back after a broken connection, and a daemon that comes back without its journal: nothing
// restarts because of either.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
  tell(node, StopWorkers{resume.round, fmt::format("round {} ended while {} was away", resume.round, node),
                         ledger_.restarts()});
}

/// What the node may have missed while it was away.
void Job::remind(const NodeId& node) {
  if (phase_ == Phase::draining && round_->waits_for_safe(*round_->seat(node)))
    tell(node,
         Drain{round_->number(), std::max(ending_.deadline - now_, Duration::zero()), ending_.reason()});
  if (phase_ != Phase::stopping) return;
  ending_.deadline = std::max(ending_.deadline, now_ + policy_.stop_deadline);
  tell(node, stop_order());
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

/// A failure at that moment need not be the first: the daemon was away then, or somebody has not come back to it yet.
bool Job::others_may_know_more(Instant at) const {
  if (!back_at_) return false;
  if (at < *back_at_ || round_->unclaimed() > 0) return true;
  const auto away = members_.away_nodes();
  return std::any_of(away.begin(), away.end(), [&](const NodeId& node) {
    const Member& member = *members_.find(node);
    return member.stand == Stand::seated && !member.away_by_itself;
  });
}

void Job::suspect(Suspect suspect) {
  if (!ending_.suspect || comes_before(suspect, *ending_.suspect)) ending_.suspect = std::move(suspect);
}

/// Everybody has spoken, or is not waited for. False if the job is over with it.
bool Job::judge_suspect() {
  const Suspect first = *std::exchange(ending_.suspect, std::nullopt);
  const auto reason = charge(first.node, first.failure);
  if (reason) name_cause(*reason, Cost::restart);
  return reason.has_value();
}

/// Told until somebody says what began it.
void Job::stop_round_for_unknown_cause() {
  stop_round(fmt::format("round {} was ending when the daemon came back", round_->number()), Cost::nothing,
             Cause::unknown);
}

/// What came after it stays.
void Job::name_cause(std::string reason, Cost cost) {
  ending_.cause = std::move(reason);
  ending_.cause_is_known = true;
  ending_.charged = cost == Cost::restart;
}

/// Why a round ended of which this daemon knows nothing, as the one before it had told this node.
void Job::hear_of_end(const Join& join) {
  if (join.why_ended.empty()) return;
  if (phase_ == Phase::gathering && ending_.cause.empty() && join.last_round > last_round_ &&
      join.last_round == heard_round_)
    return name_cause(join.why_ended, Cost::nothing);
  if (phase_ != Phase::stopping || ending_.cause_is_known || !live(join.last_round)) return;
  ending_.suspect.reset();
  ledger_.adopt(std::min(join.restart_count, policy_.max_restarts));
  name_cause(join.why_ended,
             join.restart_count > round_->state().restart_count ? Cost::restart : Cost::nothing);
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
  if (last_round <= last_round_ || last_round < heard_round_ || last_round > last_sane_round) return;
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
      tell(node,
           StopWorkers{round_->number(), fmt::format("round {} is newer", resume.round), ledger_.restarts()});
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
  back_at_ = running_since_ = now_;
  enter(Phase::running);
}

}  // namespace muster::rendezvous
