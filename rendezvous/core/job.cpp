#include "rendezvous/core/job.hpp"

#include <algorithm>
#include <utility>

namespace muster::rendezvous {

Job::Job(std::string id, JobPolicy policy, SeatMemory places)
    : id_(std::move(id)),
      policy_(policy),
      ledger_(policy),
      cooldown_(policy),
      changes_(policy),
      places_(std::move(places)) {}

std::vector<Effect> Job::step(const Event& event, Instant now) {
  now_ = std::max(now_, now);
  if (!begun_) {
    begun_ = true;
    gathering_.since = phase_since_ = now_;
  }
  std::visit([this](const auto& it) { on(it); }, event);
  return std::exchange(effects_, {});
}

std::optional<Instant> Job::wake_at() const {
  if (over() || !begun_) return std::nullopt;
  std::optional<Instant> earliest;
  const auto also = [&](std::optional<Instant> at) {
    if (at && *at != Instant::max() && (!earliest || *at < *earliest)) earliest = at;
  };
  also(members_.next_overdue());
  if (news_wanted()) also(next_news_);
  if (phase_ == Phase::gathering) also(gathering_wake());
  if (phase_ == Phase::running) also(running_wake());
  if (phase_ == Phase::draining || phase_ == Phase::stopping) also(ending_.deadline);
  if (phase_ == Phase::stopping && unclaimed_until_) also(*unclaimed_until_);
  return earliest;
}

bool Job::live(int round) const { return round_ && round_->number() == round; }

void Job::enter(Phase phase) {
  phase_ = phase;
  phase_since_ = now_;
}

void Job::tell(const NodeId& node, DaemonMessage message) {
  effects_.emplace_back(ToAgent{node, std::move(message)});
}

void Job::answer(bool done, std::string text, std::string event) {
  effects_.emplace_back(Answer{done, std::move(text), std::move(event)});
}

JobSnapshot Job::snapshot(Instant now) const {
  JobSnapshot snapshot;
  snapshot.taken_at = std::max(now_, now);
  snapshot.id = id_;
  snapshot.policy = policy_;
  snapshot.phase = phase_;
  snapshot.begun = begun_;
  snapshot.last_round = last_round_;
  snapshot.heard_round = heard_round_;
  snapshot.gathering = gathering_;
  if (round_) snapshot.round = round_->state();
  snapshot.ending = ending_;
  snapshot.growth = growth_;
  snapshot.starts_are_spared = starts_are_spared_;
  snapshot.phase_since = phase_since_;
  snapshot.running_since = running_since_;
  snapshot.first_success = first_success_;
  snapshot.unclaimed_until = unclaimed_until_;
  snapshot.back_at = back_at_;
  snapshot.members = members_.all();
  snapshot.ledger = ledger_.state();
  snapshot.strikes = cooldown_.state();
  snapshot.changes = changes_.state();
  snapshot.places = places_.state();
  snapshot.outcome = outcome_;
  snapshot.leave_signal = leave_signal_;
  snapshot.news_told = news_told_;
  snapshot.next_news = next_news_;
  return snapshot;
}

Job Job::restore(const JobSnapshot& taken, Instant now) {
  JobSnapshot snapshot = shifted_to(taken, now);
  Job job(snapshot.id, snapshot.policy, SeatMemory(std::move(snapshot.places)));
  job.now_ = now;
  job.phase_ = snapshot.phase;
  job.begun_ = snapshot.begun;
  job.last_round_ = snapshot.last_round;
  job.heard_round_ = snapshot.heard_round;
  job.gathering_ = snapshot.gathering;
  if (snapshot.round) job.round_ = Round(std::move(*snapshot.round));
  job.ending_ = std::move(snapshot.ending);
  job.growth_ = snapshot.growth;
  job.starts_are_spared_ = snapshot.starts_are_spared;
  job.phase_since_ = snapshot.phase_since;
  job.running_since_ = snapshot.running_since;
  job.first_success_ = snapshot.first_success;
  job.unclaimed_until_ = snapshot.unclaimed_until;
  job.back_at_ = snapshot.back_at;
  job.members_ = Membership(std::move(snapshot.members));
  job.ledger_ = RestartLedger(snapshot.policy, std::move(snapshot.ledger));
  job.cooldown_ = Cooldown(snapshot.policy, std::move(snapshot.strikes));
  job.changes_ = ChangeBudget(snapshot.policy, std::move(snapshot.changes));
  job.outcome_ = std::move(snapshot.outcome);
  job.leave_signal_ = snapshot.leave_signal;
  job.news_told_ = snapshot.news_told;
  job.next_news_ = snapshot.next_news;
  return job;
}

}  // namespace muster::rendezvous
