#include "tests/rendezvous/core/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <stdexcept>

#include "base/endpoint.hpp"
#include "tests/rendezvous/core/describe.hpp"

namespace muster::rendezvous {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<std::string> value_of(const std::vector<std::string>& words, const std::string& key) {
  for (const std::string& word : words)
    if (word.rfind(key + "=", 0) == 0) return word.substr(key.size() + 1);
  return std::nullopt;
}

int number(const std::string& text) { return static_cast<int>(parse_integer(text, 0, 1'000'000).value()); }

int number_of(const std::vector<std::string>& words, const std::string& key, int otherwise) {
  const auto value = value_of(words, key);
  return value ? number(*value) : otherwise;
}

Duration duration(const std::string& text) {
  Duration result{};
  if (!parse_duration(text, &result)) throw std::runtime_error("no duration: " + text);
  return result;
}

Duration duration_of(const std::vector<std::string>& words, const std::string& key, Duration otherwise) {
  const auto value = value_of(words, key);
  return value ? duration(*value) : otherwise;
}

std::pair<int, int> range(const std::string& text) {
  const auto colon = text.find(':');
  return {number(text.substr(0, colon)), number(text.substr(colon + 1))};
}

}  // namespace

std::string Scenario::replay(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("  ", 0) == 0) continue;
    out_ += line + "\n";
    if (line.rfind("> ", 0) == 0) happen(line.substr(2));
  }
  return out_;
}

void Scenario::happen(const std::string& line) {
  const Words words = words_of(line);
  const std::string what = line.substr(std::min(words[0].size() + 1, line.size()));
  if (words[0] == "nodes") return make_job(words);
  if (words[0] == "why") {
    out_ += "  " + job_->reason(now_) + "\n";
  } else if (words[0] == "operator") {
    operator_does(what, words);
  } else if (words[0] == "daemon") {
    restart(what == "restarts");
  } else if (what == "passes" || what == "pass") {
    pass(duration(words[0]));
  } else {
    node_does(words[0], what, words);
  }
}

void Scenario::make_job(const Words& words) {
  std::tie(policy_.min_nodes, policy_.max_nodes) = range(words.at(1));
  policy_.max_restarts = number_of(words, "restarts", 0);
  policy_.last_call = duration_of(words, "last-call", policy_.last_call);
  policy_.drain_grace = duration_of(words, "drain", policy_.drain_grace);
  policy_.cooldown_base = duration_of(words, "cooldown", policy_.cooldown_base);
  policy_.membership_changes.count = has(words, "changes=unlimited")
                                         ? unlimited
                                         : number_of(words, "changes", policy_.membership_changes.count);
  policy_.allow_chaos = has(words, "chaos");
  if (value_of(words, "barrier")) policy_.exit_barrier_limit = duration_of(words, "barrier", {});
  job_ = std::make_unique<Job>("job", validate(policy_).value());
}

void Scenario::node_does(const NodeId& node, const std::string& what, const Words& words) {
  const int round = nodes_[node].assignment.round;
  if (words.at(1) == "joins") return joins(node, words);
  if (words.at(1) == "fails") return fails(node, words);
  if (words.at(1) == "resumes") return resumes(node, words);
  if (what.starts_with("is stopped and joins")) {
    say(node, WorkersStopped{round});
    return joins(node, words);
  }
  if (what == "makes a step") return say(node, Progress{round, 1});
  if (what == "is safe") return say(node, WorkersSafe{round, 1});
  if (what == "has stopped") return say(node, WorkersStopped{round});
  if (what == "has succeeded") return say(node, WorkersSucceeded{round});
  if (what == "leaves") return say(node, Leave{"SIGTERM"});
  if (what == "is cut") return step(ConnectionLost{node, LossKind::closed, "connection closed"});
  if (what == "is broken off") return step(ConnectionLost{node, LossKind::broken, "connection reset"});
  if (what == "is silent") return step(ConnectionLost{node, LossKind::silent, "nothing heard for 30 s"});
  throw std::runtime_error("nobody knows what it means that a node " + what);
}

void Scenario::operator_does(const std::string& what, const Words& words) {
  if (what == "closes the roster") return step(CloseRoster{});
  if (words.at(1) == "drains") return step(DrainNode{words.at(2)});
  if (words.at(1) == "pardons") return step(ClearCooldown{words.at(2)});
  if (words.at(1) == "kills") return step(Rehearse{number(words.at(3)), "", SIGKILL});
  if (words.at(1) == "terminates") return step(Rehearse{std::nullopt, words.at(2), SIGTERM});
  if (what == "stops the job") return step(StopJob{"enough"});
  const auto [low, high] = range(words.at(3));
  step(Scale{low, high});
}

void Scenario::joins(const NodeId& node, const Words& words) {
  NodeOffer& offer = nodes_[node].offer;
  if (offer.node.empty()) {
    offer.node = offer.host = node;
    offer.address = "10.0.0." + node.substr(1);
    offer.store_port = static_cast<std::uint16_t>(4000 + nodes_.size());
  }
  offer.local_workers = number_of(words, "workers", offer.local_workers);
  if (const auto rank = value_of(words, "rank")) offer.preferred_group_rank = number(*rank);
  offer.hosts_endpoint = offer.hosts_endpoint || has(words, "endpoint");
  if (has(words, "anew")) offer.incarnation += "+";
  const int last_round = number_of(words, "after", 0);
  if (last_round == 0) return say(node, Join{offer});
  const Told& told = nodes_[node].told;
  const bool of_that_round = told.round == last_round;
  say(node, Join{offer, last_round, of_that_round ? told.restarts : 0, of_that_round ? told.why : ""});
}

void Scenario::fails(const NodeId& node, const Words& words) {
  const Assignment& assignment = nodes_[node].assignment;
  WorkerFailed failed{assignment.round, {}};
  failed.failure.node = node;
  failed.failure.rank = assignment.first_rank;
  failed.failure.lived_ms =
      duration_of(words, "lived", std::chrono::minutes(1)) / std::chrono::milliseconds(1);
  failed.failure.cause = ExitCause::exited(number_of(words, "exit", 1));
  if (const auto signal = value_of(words, "signal"))
    failed.failure.cause = ExitCause::signalled(number(*signal));
  failed.age = duration_of(words, "ago", {});
  say(node, failed);
}

void Scenario::resumes(const NodeId& node, const Words& words) {
  const Assignment& assignment = nodes_[node].assignment;
  if (nodes_[node].offer.node.empty()) nodes_[node].offer.node = node;
  Resume resume;
  resume.offer = nodes_[node].offer;
  resume.round = number_of(words, "round", assignment.round);
  resume.group_rank = number_of(words, "place", assignment.group_rank);
  resume.group_world_size = number_of(words, "of", assignment.group_world_size);
  resume.first_rank = assignment.first_rank;
  resume.restart_count = assignment.restart_count;
  resume.workers_alive = true;
  resume.next_node = assignment.next_node;
  say(node, resume);
}

void Scenario::pass(Duration time) {
  const Instant end = now_ + time;
  while (job_->wake_at() && *job_->wake_at() <= end) {
    now_ = std::max(now_, *job_->wake_at());
    step(Tick{});
  }
  now_ = end;
}

void Scenario::restart(bool with_memory) {
  job_ = std::make_unique<Job>(with_memory ? Job::restore(job_->snapshot(now_), now_) : Job("job", policy_));
  if (with_memory) step(Restarted{});
}

void Scenario::say(const NodeId& node, AgentMessage message) { step(FromAgent{node, std::move(message)}); }

void Scenario::step(const Event& event) {
  for (const Effect& effect : job_->step(event, now_)) print(effect);
}

void Scenario::print(const Effect& effect) {
  if (const auto* answer = std::get_if<Answer>(&effect))
    out_ += fmt::format("  operator: {}{}\n", answer->done ? "" : "no, ", answer->text);
  if (const auto* over = std::get_if<JobOver>(&effect))
    out_ += fmt::format("  job over; restarts: {}\n", fmt::join(over->outcome.restarts, ", "));
  const auto* to_agent = std::get_if<ToAgent>(&effect);
  if (!to_agent) return;
  out_ += fmt::format("  {}: {}\n", to_agent->node, describe(to_agent->message));
  if (const auto* assignment = std::get_if<Assignment>(&to_agent->message)) {
    nodes_[to_agent->node].assignment = *assignment;
    nodes_[to_agent->node].told = {};
  }
  const auto* stop = std::get_if<StopWorkers>(&to_agent->message);
  if (!stop || stop->reason.empty()) return;
  Told& told = nodes_[to_agent->node].told;
  if (told.round != stop->round) told = {stop->round, stop->restart_count, ""};
  if (told.why.empty() && stop->cause_is_known) told.why = stop->reason;
}

}  // namespace muster::rendezvous
