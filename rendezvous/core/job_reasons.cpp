// Every state's sentence, and when the waiting nodes are told of it.
#include <fmt/format.h>

#include "rendezvous/core/job.hpp"
#include "rendezvous/core/sentences.hpp"

namespace muster::rendezvous {

std::string Job::reason(Instant now) const {
  switch (phase_) {
    case Phase::gathering:
      return gathering_reason(now);
    case Phase::running:
      return running_reason();
    case Phase::draining:
    case Phase::stopping:
      return ending_reason(now);
    case Phase::over:
      break;
  }
  return outcome_.reason;
}

std::string Job::gathering_reason(Instant now) const {
  const Roster who = roster();
  const std::string names = names_of(members_.first_available(max_names_in_sentence), members_.available());
  const std::string on_the_way = who.coming > 0 ? fmt::format(", {} on the way", who.coming) : "";
  const Instant deadline = begun_ ? gathering_.since + policy_.join_deadline : now + policy_.join_deadline;
  if (who.here < policy_.min_nodes)
    return fmt::format("waiting for {} more {}: {} here, {} of {}{}; joining ends in {}",
                       policy_.min_nodes - who.here, policy_.min_nodes - who.here == 1 ? "node" : "nodes",
                       who.here == 0 ? "none is" : names + (who.here == 1 ? " is" : " are"), who.here,
                       policy_.fixed_size()
                           ? fmt::format("{}", policy_.min_nodes)
                           : fmt::format("at least {} (up to {})", policy_.min_nodes, policy_.max_nodes),
                       on_the_way, human(deadline - now));
  const Instant next = ask_again_at(gathering_, who, policy_, changes_.settle_window(now));
  const bool settling = gathering_.reforming && who.coming == 0;
  return fmt::format("{} of {} nodes {} here ({}){}; {} in {}", who.here,
                     range_of(policy_.min_nodes, policy_.max_nodes), who.here == 1 ? "is" : "are", names,
                     on_the_way, settling ? "the next round forms" : "last call ends",
                     human(std::max(next - now, Duration::zero())));
}

std::string Job::running_reason() const {
  if (round_->unclaimed() > 0)
    return fmt::format("round {} was running when the daemon came back: {} of {} nodes have come back too",
                       round_->number(), round_->size() - round_->unclaimed(), round_->size());
  const int room = policy_.max_nodes - round_->size();
  return fmt::format("round {} runs: {}, {}{}", round_->number(), count_of(round_->size(), "node"),
                     count_of(round_->world_size(), "worker"),
                     room > 0 ? fmt::format(", room for {} more", room) : "");
}

std::string Job::ending_reason(Instant now) const {
  const bool draining = phase_ == Phase::draining;
  const int missing_count = draining ? round_->unsafe_count() : round_->unstopped_count();
  const auto names =
      draining ? round_->unsafe(max_names_in_sentence) : round_->unstopped(max_names_in_sentence);
  return fmt::format("round {} ends: {}; waiting for {} to {}, {} at most", round_->number(), ending_.reason,
                     missing_count == 0 ? "nodes that are away" : names_of(names, missing_count),
                     draining ? "save" : "stop", human(std::max(ending_.deadline - now, Duration::zero())));
}

/// Why a round of `nodes` is formed now.
std::string Job::forming_reason(int nodes) const {
  if (!ending_.reason.empty()) return ending_.reason;
  if (nodes == 1 && policy_.max_nodes == 1) return "the node is here";
  if (nodes == policy_.max_nodes) return fmt::format("all {} are here", count_of(nodes, "node"));
  return fmt::format("{} of {} nodes {} here and {}", nodes, range_of(policy_.min_nodes, policy_.max_nodes),
                     nodes == 1 ? "is" : "are",
                     gathering_.roster_closed ? "no more are coming" : "the last call is over");
}

// ---- news for those who wait ---------------------------------------------------------------------------

std::string Job::waiting_reason(const NodeId& node) const {
  const auto cooling_until = cooldown_.until(node, now_);
  if (cooling_until && phase_ != Phase::stopping)
    return fmt::format("{} failed {} times of late: it is passed over for {} unless it is needed", node,
                       cooldown_.strikes(node, now_), human(*cooling_until - now_));
  if (phase_ != Phase::running) return reason(now_);
  if (round_->size() >= policy_.max_nodes)
    return fmt::format("all {} places are taken: {} is a spare and steps in when a node is lost",
                       policy_.max_nodes, node);
  if (round_->any_succeeded())
    return fmt::format("round {} is finishing: {} steps in if it does not", round_->number(), node);
  if (round_->unclaimed() > 0) return running_reason();
  const Instant at = growth_at();
  const bool limited = changes_.growth_allowed_at(now_) > now_;
  return fmt::format(
      "round {} runs with {}: {} joins the next one{}{}", round_->number(), count_of(round_->size(), "node"),
      node, at == Instant::max() ? "" : ", asked for in " + human(std::max(at - now_, Duration::zero())),
      limited ? fmt::format(" ({} in the last {} are the limit)",
                            count_of(changes_.used(now_), "membership change"),
                            human(policy_.membership_changes.per))
              : "");
}

/// Equal keys: nothing that a waiting node would want to hear has changed. Time that passes is no news.
NewsKey Job::news_key() const {
  const bool last_call = phase_ == Phase::gathering && gathering_.enough_since.has_value();
  const bool finishing = round_ && round_->any_succeeded();
  return {static_cast<int>(phase_),
          last_round_,
          members_.available(),
          members_.coming(),
          policy_.min_nodes,
          policy_.max_nodes,
          last_call,
          finishing,
          round_ ? round_->unclaimed() : 0};
}

bool Job::news_wanted() const { return members_.available() > 0 && news_key() != news_.told; }

/// A newcomer hears at once why it waits, the others when that has changed, but not in quick succession: with
/// many nodes that join, each hears a few sentences, not one for each node.
void Job::news() {
  if (news_wanted() && now_ >= news_.next) {
    for (const NodeId& node : members_.first_available(members_.available()))
      tell(node, Waiting{waiting_reason(node)});
    news_ = {news_key(), now_ + policy_.waiting_news_interval};
  } else {
    for (const NodeId& node : newcomers_)
      if (members_.is_available(node)) tell(node, Waiting{waiting_reason(node)});
  }
  newcomers_.clear();
}

}  // namespace muster::rendezvous
