// A supervisor on stage: a test says what happens and looks at what it wants done.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/supervisor.hpp"

namespace muster::agent {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Scene {
 public:
  explicit Scene(int workers = 2, SupervisorOptions options = {}) : workers_(workers) {
    options.offer.node = "n1";
    options.offer.host = "host1";
    options.offer.local_workers = workers;
    supervisor = std::make_unique<Supervisor>(options);
  }

  /// What the event led to, stores opened on the way.
  std::vector<Effect>& happens(const Event& event) {
    effects = supervisor->step(event, now);
    for (std::size_t index = 0; index < effects.size(); ++index) {
      if (!std::holds_alternative<OpenStore>(effects[index])) continue;
      for (Effect& effect : supervisor->step(
               StoreOpened{static_cast<std::uint16_t>(4000 + std::get<OpenStore>(effects[index]).number)},
               now))
        effects.push_back(std::move(effect));
    }
    return effects;
  }

  void daemon(rendezvous::DaemonMessage message) { happens(FromDaemon{std::move(message)}); }
  void assigned(int round, int group_rank = 0) {
    rendezvous::Assignment assignment;
    assignment.round = round;
    assignment.group_rank = group_rank;
    assignment.first_rank = group_rank * workers_;
    assignment.world_size = workers_ * (group_rank + 1);
    assignment.group_world_size = group_rank + 1;
    assignment.master_addr = "127.0.0.1";
    assignment.master_port = 4001;
    daemon(assignment);
  }
  /// Joined, assigned, all workers started.
  void runs(int round = 1) {
    if (round == 1) happens(Begin{});
    assigned(round);
    for (int local_rank = 0; local_rank < workers_; ++local_rank)
      happens(WorkerStarted{local_rank, 100 + local_rank, now});
  }
  void ends(int local_rank, ExitCause cause) { happens(WorkerEnded{local_rank, std::move(cause), 77}); }
  void output(int local_rank) {
    happens(WorkerOutput{local_rank, false, false, "boom", {"last line"}, "/logs/x"});
  }
  void ends_with_output(int local_rank, ExitCause cause) {
    ends(local_rank, std::move(cause));
    output(local_rank);
  }
  void swept(std::vector<std::string> survivors = {}) { happens(GroupSwept{std::move(survivors)}); }
  void after(Duration duration) {
    now += duration;
    happens(Tick{});
  }

  template <class Kind>
  std::vector<Kind> wanted() const {
    std::vector<Kind> found;
    for (const Effect& effect : effects)
      if (const Kind* kind = std::get_if<Kind>(&effect)) found.push_back(*kind);
    return found;
  }
  template <class Message>
  std::vector<Message> sent() const {
    std::vector<Message> found;
    for (const SendToDaemon& effect : wanted<SendToDaemon>())
      if (const Message* message = std::get_if<Message>(&effect.message)) found.push_back(*message);
    return found;
  }
  /// (local rank, signal), of main processes or whole groups.
  std::vector<std::pair<int, int>> signals(SignalTarget target) const {
    std::vector<std::pair<int, int>> found;
    for (const SignalWorker& effect : wanted<SignalWorker>())
      if (effect.target == target) found.emplace_back(effect.local_rank, effect.signal_number);
    return found;
  }
  std::vector<std::pair<int, int>> main_signals() const { return signals(SignalTarget::main_process); }
  std::vector<std::pair<int, int>> group_signals() const { return signals(SignalTarget::whole_group); }
  std::string said() const {
    std::string text;
    for (const Say& effect : wanted<Say>()) text += effect.sentence + "\n";
    return text;
  }

  Instant now{};
  std::unique_ptr<Supervisor> supervisor;
  std::vector<Effect> effects;

 private:
  int workers_;
};

using Pairs = std::vector<std::pair<int, int>>;

}  // namespace muster::agent
