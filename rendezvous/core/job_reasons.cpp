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
      return running_reason(now);
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
    return fmt::format(
        "waiting for {} more {}: {} here, {} of {}{}; joining ends in {}{}", policy_.min_nodes - who.here,
        policy_.min_nodes - who.here == 1 ? "node" : "nodes",
        who.here == 0 ? "none is" : names + (who.here == 1 ? " is" : " are"), who.here,
        policy_.fixed_size() ? fmt::format("{}", policy_.min_nodes)
                             : fmt::format("at least {} (up to {})", policy_.min_nodes, policy_.max_nodes),
        on_the_way, human(deadline - now), ending_.cause.empty() ? "" : "; " + ending_.reason());
  const Instant next = ask_again_at(gathering_, who, policy_, policy_.settle_window);
  const std::string left = human(std::max(next - now, Duration::zero()));
  std::string what_next = "last call ends in " + left;
  if (gathering_.reforming)
    what_next = who.coming > 0 ? fmt::format("waiting {} at most", left) : "the next round forms in " + left;
  return fmt::format("{} of {} nodes {} here ({}){}; {}", who.here,
                     range_of(policy_.min_nodes, policy_.max_nodes), who.here == 1 ? "is" : "are", names,
                     on_the_way, what_next);
}

std::string Job::unclaimed_reason() const {
  const auto named = round_->expected(max_names_in_sentence);
  return fmt::format("round {} was running when the daemon came back: {} of {} nodes have come back too{}",
                     round_->number(), round_->size() - round_->unclaimed(), round_->size(),
                     named.empty() ? "" : "; " + names_of(named, round_->unclaimed()) + " not yet");
}

std::string Job::running_reason(Instant now) const {
  if (round_->unclaimed() > 0) return unclaimed_reason();
  const int room = policy_.max_nodes - round_->size();
  std::string text = fmt::format("round {} runs: {}, {}", round_->number(), count_of(round_->size(), "node"),
                                 count_of(round_->world_size(), "worker"));
  if (room > 0) text += fmt::format(", room for {} more", room);
  if (members_.seated_away() > 0) return text + "; " + away_reason(now);
  if (room <= 0 || members_.available() == 0 || round_->any_succeeded()) return text;
  const auto usable = usable_names();
  const NodeId first = usable.empty() ? members_.first_available(1).front() : usable.front();
  return text + "; " + (usable.empty() ? cooling_reason(first, now) : joining_reason(first, now));
}

/// Of one that is away of those who sit in the round.
std::string Job::away_reason(Instant now) const {
  for (const NodeId& node : members_.away_nodes()) {
    const Member& member = *members_.find(node);
    if (member.stand != Stand::seated) continue;
    const int others = members_.seated_away() - 1;
    return fmt::format("{}{} away ({}), and lost in {}", node,
                       others == 0 ? " is" : fmt::format(" and {} more are", others), member.away_reason,
                       human(std::max(*member.away_until - now, Duration::zero())));
  }
  return "";
}

std::string Job::ending_reason(Instant now) const {
  const bool draining = phase_ == Phase::draining;
  const int missing_count = draining ? round_->unsafe_count() : round_->unstopped_count();
  const auto names =
      draining ? round_->unsafe(max_names_in_sentence) : round_->unstopped(max_names_in_sentence);
  return fmt::format("round {} ends: {}; waiting for {} to {}, {} at most", round_->number(),
                     ending_.reason(),
                     missing_count == 0 ? "nodes that are away" : names_of(names, missing_count),
                     draining ? "save" : "stop", human(std::max(ending_.deadline - now, Duration::zero())));
}

/// Why a round of `nodes` is formed now.
std::string Job::forming_reason(int nodes) const {
  if (!ending_.cause.empty()) return ending_.reason();
  if (nodes == 1 && policy_.max_nodes == 1) return "a job of one node";
  if (nodes == policy_.max_nodes) return fmt::format("all {} are here", count_of(nodes, "node"));
  return fmt::format("{} of {} nodes {} here and {}", nodes, range_of(policy_.min_nodes, policy_.max_nodes),
                     nodes == 1 ? "is" : "are",
                     gathering_.roster_closed ? "no more are coming" : "the last call is over");
}

// ---- news for those who wait ---------------------------------------------------------------------------

std::string Job::cooling_reason(const NodeId& node, Instant now) const {
  const auto until = cooldown_.until(node, now);
  return fmt::format("{} failed {} times of late: it is passed over for {} unless it is needed", node,
                     cooldown_.strikes(node, now), human(until ? *until - now : Duration::zero()));
}

/// Of a node for which there is room in the round that runs.
std::string Job::joining_reason(const NodeId& node, Instant now) const {
  const Instant at = growth_at(now);
  if (spared_until(now) == at)
    return fmt::format("{} joins the next one once this one has made a step, in {} at the latest", node,
                       human(at - now));
  const bool limited = changes_.growth_allowed_at(now) > now;
  return fmt::format(
      "{} joins the next one{}{}", node,
      at == Instant::max() ? "" : ", asked for in " + human(std::max(at - now, Duration::zero())),
      limited ? fmt::format(" (the limit is {} in {})",
                            count_of(policy_.membership_changes.count, "membership change"),
                            human(policy_.membership_changes.per))
              : "");
}

std::string Job::waiting_reason(const NodeId& node, Instant now) const {
  if (cooldown_.until(node, now) && phase_ != Phase::stopping) return cooling_reason(node, now);
  if (phase_ != Phase::running) return reason(now);
  if (round_->unclaimed() > 0) return unclaimed_reason();
  if (round_->size() >= policy_.max_nodes)
    return fmt::format("all {} places are taken: {} is a spare and steps in when a node is lost",
                       policy_.max_nodes, node);
  if (round_->any_succeeded())
    return fmt::format("round {} is finishing: {} steps in if it does not", round_->number(), node);
  if (members_.seated_away() > 0)
    return fmt::format("round {} runs, but {} away: {} joins the next one", round_->number(),
                       members_.seated_away() == 1
                           ? "one of its nodes is"
                           : fmt::format("{} of its nodes are", members_.seated_away()),
                       node);
  const bool begun = spared_until(now) == growth_at(now);
  const std::string nodes = count_of(round_->size(), "node");
  return fmt::format("round {} {}: {}", round_->number(),
                     begun ? "with " + nodes + " has only begun" : "runs with " + nodes,
                     joining_reason(node, now));
}

/// What a waiting node would want to hear when it changes. Time that passes is no news.
NewsKey Job::news_key() const {
  NewsKey key{static_cast<int>(phase_), last_round_, policy_.min_nodes, policy_.max_nodes};
  if (phase_ == Phase::gathering) {
    key[4] = members_.available();
    key[5] = members_.coming();
    key[6] = gathering_.enough_since.has_value();
  } else if (phase_ == Phase::running) {
    key[4] = static_cast<int>(cooldown_.cooling(now_).size());
    key[5] = changes_.growth_allowed_at(now_) > now_;
    key[6] = spared_until(now_).has_value();
    key[7] = round_->any_succeeded();
    key[8] = round_->unclaimed();
    key[9] = members_.seated_away() > 0;
  }
  return key;
}

bool Job::news_wanted() const { return members_.available() > 0 && news_key() != news_told_; }

/// A newcomer hears at once why it waits, the others when that has changed, but not in quick succession: with
/// many nodes that join, each hears a few sentences, not one for each node. Who is asked where it sat hears nothing
/// before it has answered.
void Job::news() {
  const NewsKey key = news_key();
  for (const NodeId& node : newcomers_) {
    if (!members_.is_available(node) || (round_ && round_->expects(node))) continue;
    tell(node, Waiting{waiting_reason(node, now_)});
    members_.told(node, key);
  }
  newcomers_.clear();
  if (!news_wanted() || now_ < next_news_) return;
  for (const NodeId& node : members_.first_available(members_.available())) {
    if (members_.find(node)->told == key || (round_ && round_->expects(node))) continue;
    tell(node, Waiting{waiting_reason(node, now_)});
    members_.told(node, key);
  }
  news_told_ = key;
  next_news_ = now_ + policy_.waiting_news_interval;
}

}  // namespace muster::rendezvous
