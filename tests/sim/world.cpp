#include "tests/sim/world.hpp"

#include <fmt/format.h>

#include <csignal>
#include <utility>

namespace muster::sim {

using namespace rendezvous;
using namespace std::chrono_literals;

namespace {

JobPolicy random_policy(Random& random, int nodes) {
  JobPolicy policy;
  policy.min_nodes = random.between(1, nodes);
  policy.max_nodes = random.between(policy.min_nodes, nodes);
  policy.max_restarts = random.between(0, 6);
  policy.last_call = random.ms(0, 10'000);
  policy.drain_grace = random.ms(0, 5'000);
  policy.stop_deadline = random.ms(3'000, 10'000);
  policy.cooldown_base = random.ms(0, 5'000);
  policy.cooldown_cap = policy.cooldown_base + random.ms(0, 60'000);
  policy.membership_changes.count = random.chance(20) ? unlimited : random.between(0, 20);
  policy.membership_changes.per = 60s;
  policy.first_step_timeout = random.chance(20) ? 0s : random.ms(0, 30'000);
  if (random.chance(20)) policy.restart_window = WindowedBudget{random.between(1, 3), 30s};
  if (random.chance(20)) policy.exit_barrier_limit = random.ms(0, 5'000);
  if (random.chance(50)) policy.startup_window = 0s;
  policy.allow_chaos = random.chance(80);
  return policy;
}

}  // namespace

World::World(const WorldOptions& options)
    : options_(options), random_(options.seed), judge_(options.forgetful_daemon) {
  const int count = random_.between(1, 7);
  policy_ = random_policy(random_, count);
  job_ = std::make_unique<Job>("job", policy_);
  nodes_.resize(static_cast<std::size_t>(count));
  steps_are_told_ = random_.chance(60);
  trace([&] {
    return fmt::format("{} nodes, {}:{}, {} restarts", count, policy_.min_nodes, policy_.max_nodes,
                       policy_.max_restarts);
  });
  for (int i = 0; i < count; ++i) {
    nodes_[static_cast<std::size_t>(i)].name = fmt::format("n{}", i);
    relaunch_later(i, random_.ms(0, 5'000));
  }
  for (int faults = random_.between(0, 25); faults > 0; --faults)
    after(random_.ms(0, static_cast<int>(options_.fault_period / 1ms)), [this] { one_fault(); });
  after(options_.fault_period + 1s, [this] {
    for (std::size_t i = 0; i < nodes_.size(); ++i) relaunch_later(static_cast<int>(i), 0s);
  });
  after(options_.fault_period + 120s, [this] { look_for_strays(); });
}

WorldResult World::run() {
  const Instant end = start_ + options_.fault_period + 2h;
  while (!items_.empty() && result_.wrong.empty()) {
    Item item = items_.top();
    items_.pop();
    if (item.at > end) {
      wrong("the job is not over two hours after the last fault: " + job_->reason(daemon_now()));
      break;
    }
    now_ = item.at;
    item.act();
  }
  result_.rounds = judge_.rounds();
  if (!result_.wrong.empty()) return result_;
  result_.ending = job_->over() ? job_->reason(daemon_now()) : "nobody came";
  if (!job_->over() && job_->wake_at()) wrong("nothing happens any more and the job is not over");
  for (const Node& node : nodes_)
    if (node.agent) wrong(node.name + " is still there");
  return result_;
}

void World::after(Duration delay, std::function<void()> act) {
  items_.push({now_ + delay, ++order_, std::move(act)});
}

void World::wrong(const std::string& what) {
  if (result_.wrong.empty())
    result_.wrong =
        fmt::format("at {:.3f} s: {}", std::chrono::duration<double>(now_ - start_).count(), what);
}

void World::trace(const std::function<std::string()>& line) const {
  if (options_.trace)
    fmt::print("{:9.3f}  {}\n", std::chrono::duration<double>(now_ - start_).count(), line());
}

void World::one_fault() {
  const int node = random_.between(0, static_cast<int>(nodes_.size()) - 1);
  const int connection = nodes_[static_cast<std::size_t>(node)].connection;
  switch (random_.between(0, 9)) {
    case 0:
    case 1:
      return kill(node, "killed");
    case 2:
      return terminate(node);
    case 3:
      return fail_worker(node);
    case 4:
    case 5:
      return cut(connection, LossKind::broken);
    case 6:
      return cut(connection, LossKind::silent);
    case 7:
      return crash_daemon();
    case 8:
      skew_ += random_.ms(-1'000, 20'000);
      last_jump_ = now_;
      trace([&] { return "the clock jumps"; });
      return;
    default:
      return operator_acts();
  }
}

void World::operator_acts() {
  if (!daemon_up_) return;
  const std::string& name =
      nodes_[static_cast<std::size_t>(random_.between(0, static_cast<int>(nodes_.size()) - 1))].name;
  const int count = static_cast<int>(nodes_.size());
  switch (random_.between(0, 12)) {
    case 0:
    case 1:
      return step(CloseRoster{});
    case 2:
    case 3:
      judge_.note_leave();
      return step(DrainNode{name});
    case 4:
    case 5:
    case 6: {
      const int low = random_.between(1, count);
      return step(Scale{low, random_.between(low, count)});
    }
    case 7:
    case 8:
      return step(ClearCooldown{name});
    case 9:
    case 10:
      return step(Rehearse{random_.between(0, 2 * count), "", random_.chance(80) ? SIGKILL : SIGUSR1});
    case 11:
      return step(Rehearse{std::nullopt, name, random_.chance(50) ? SIGKILL : SIGTERM});
    default:
      judge_.note_operator_stop();
      return step(StopJob{"enough"});
  }
}

/// Faults are over: whoever lives belongs to the job, in a round, on the way into one, or parked.
void World::look_for_strays() {
  if (over_) return;
  for (const Node& node : nodes_) {
    if (!node.agent || node.agent->leaving()) continue;
    if (!member_knows(node.name)) wrong(node.name + " lives, and is in no round and not parked");
  }
}

}  // namespace muster::sim
