// Faults on purpose: which signals, and who is spared.
#include "rendezvous/core/rehearsal.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "rendezvous/core/job.hpp"

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;

constexpr Instant start = Instant(24h);

TEST(RehearsalSignal, IsANameWithOrWithoutSigOrANumber) {
  for (const char* text : {"SIGKILL", "KILL", "kill", "sigkill", "9"})
    EXPECT_EQ(rehearsal_signal(Victim::worker, text).value(), SIGKILL) << text;
  for (const char* text : {"TERM", "STOP", "CONT", "ABRT", "SEGV", "INT"})
    EXPECT_TRUE(rehearsal_signal(Victim::worker, text)) << text;
}

TEST(RehearsalSignal, OthersAreRefusedNamingThoseThatAreAllowed) {
  for (const char* text : {"USR1", "SIG", "", "0", "-9", "64", "99", "9 ", "KILLER", "SIGSIGKILL"})
    EXPECT_FALSE(rehearsal_signal(Victim::worker, text)) << text;
  EXPECT_EQ(
      rehearsal_signal(Victim::worker, "SIGUSR1").error().sentence(),
      "'SIGUSR1': a worker is sent SIGKILL, SIGTERM, SIGSTOP, SIGCONT, SIGABRT, SIGSEGV or SIGINT only");
  EXPECT_TRUE(rehearsal_signal(Victim::agent, "TERM"));
  EXPECT_EQ(rehearsal_signal(Victim::agent, "STOP").error().sentence(),
            "'STOP': a launcher is sent SIGKILL or SIGTERM only");
}

class Rehearsal : public testing::Test {
 protected:
  /// A round of two nodes with two workers each.
  void begin(bool allowed = true, int max_nodes = 2) {
    JobPolicy policy;
    policy.min_nodes = 2;
    policy.max_nodes = max_nodes;
    policy.allow_chaos = allowed;
    job_.emplace("job", policy);
    for (const char* node : {"n1", "n2"}) join(node);
  }
  void join(const NodeId& node) {
    NodeOffer offer;
    offer.node = offer.host = node;
    offer.address = "10.0.0.1";
    offer.incarnation = "1";
    offer.local_workers = 2;
    job_->step(FromAgent{node, Join{offer}}, start);
  }
  /// The answer; what is sent is kept.
  Answer ask(const Rehearse& wish) {
    injected_.clear();
    const auto before = job_->snapshot(start);
    Answer answer{false, "none"};
    for (const auto& effect : job_->step(wish, start)) {
      if (const auto* given = std::get_if<Answer>(&effect)) answer = *given;
      if (const auto* to = std::get_if<ToAgent>(&effect))
        injected_.emplace_back(to->node, std::get<Inject>(to->message));
    }
    EXPECT_TRUE(job_->snapshot(start) == before) << "a rehearsal changes nothing by itself";
    EXPECT_EQ(injected_.size(), answer.done ? 1u : 0u);
    return answer;
  }
  std::string refused(const Rehearse& wish) {
    const auto answer = ask(wish);
    EXPECT_FALSE(answer.done);
    return answer.text;
  }

  std::optional<Job> job_;
  std::vector<std::pair<NodeId, Inject>> injected_;
};

TEST_F(Rehearsal, ASignalGoesToTheNodeOfTheRank) {
  begin();
  const auto answer = ask({2, "", SIGSEGV});
  EXPECT_TRUE(answer.done);
  EXPECT_EQ(answer.text, "SIGSEGV goes to rank 2 on n2");
  EXPECT_EQ(answer.event, "an operator sent SIGSEGV to rank 2 on n2 (musterctl chaos)");
  EXPECT_EQ(injected_.front(), std::pair(NodeId("n2"), Inject{2, SIGSEGV}));
  EXPECT_TRUE(ask({1, "", SIGKILL}).done);
  EXPECT_EQ(injected_.front().first, "n1");
}

TEST_F(Rehearsal, OrToALauncher) {
  begin();
  const auto answer = ask({std::nullopt, "n1", SIGTERM});
  EXPECT_EQ(answer.text, "SIGTERM goes to the launcher of n1");
  EXPECT_EQ(answer.event, "an operator sent SIGTERM to the launcher of n1 (musterctl chaos)");
  EXPECT_EQ(injected_.front(), std::pair(NodeId("n1"), Inject{std::nullopt, SIGTERM}));
}

TEST_F(Rehearsal, NobodyIsHurtInAJobThatDoesNotAllowIt) {
  begin(false);
  const std::string why =
      "job job was not started for rehearsals: give all its launchers --rdzv-conf=allow_chaos=true";
  EXPECT_EQ(refused({0, "", SIGKILL}), why);
  EXPECT_EQ(refused({std::nullopt, "n1", SIGKILL}), why);
}

TEST_F(Rehearsal, WhoIsNotThereIsNamed) {
  begin();
  EXPECT_EQ(refused({4, "", SIGKILL}), "round 1 has no rank 4: its ranks are 0 to 3");
  EXPECT_EQ(refused({std::nullopt, "n3", SIGKILL}), "n3 is not in job job");
  job_->step(ConnectionLost{"n2", LossKind::broken, "connection reset"}, start);
  EXPECT_EQ(refused({2, "", SIGKILL}), "n2 is away (connection reset)");
  EXPECT_EQ(refused({std::nullopt, "n2", SIGKILL}), "n2 is away (connection reset)");
  EXPECT_TRUE(ask({0, "", SIGKILL}).done);
}

TEST_F(Rehearsal, OtherSignalsAreRefusedHereToo) {
  begin();
  EXPECT_NE(refused({0, "", SIGUSR1}).find("SIGUSR1: a worker is sent"), std::string::npos);
  EXPECT_NE(refused({std::nullopt, "n1", SIGSTOP}).find("SIGSTOP: a launcher is sent"), std::string::npos);
}

TEST_F(Rehearsal, WithoutARoundThereAreNoRanksButLaunchers) {
  JobPolicy policy;
  policy.min_nodes = policy.max_nodes = 2;
  policy.allow_chaos = true;
  job_.emplace("job", policy);
  join("n1");
  EXPECT_EQ(refused({0, "", SIGKILL}),
            "no round runs now: waiting for 1 more node: n1 is here, 1 of 2; joining ends in 10 min");
  EXPECT_TRUE(ask({std::nullopt, "n1", SIGKILL}).done);
}

/// Node n2 in a round of two nodes that runs, as it tells a daemon without memory.
Resume resume_of_n2() {
  Resume resume;
  resume.offer.node = resume.offer.host = "n2";
  resume.offer.address = "10.0.0.2";
  resume.offer.local_workers = 2;
  resume.round = 3;
  resume.group_rank = 1;
  resume.group_world_size = 2;
  resume.first_rank = 2;
  resume.workers_alive = true;
  return resume;
}

TEST_F(Rehearsal, WhoseRanksADaemonWithoutMemoryDoesNotKnowYetIsSaid) {
  JobPolicy policy;
  policy.min_nodes = policy.max_nodes = 2;
  policy.allow_chaos = true;
  job_.emplace("job", policy);
  job_->step(FromAgent{"n2", resume_of_n2()}, start);
  EXPECT_EQ(refused({0, "", SIGKILL}).find("nobody has said yet who has rank 0: round 3 was running"), 0u);
  EXPECT_TRUE(ask({3, "", SIGKILL}).done);
}

TEST_F(Rehearsal, WhoseRanksNobodyWillSayAnyMoreIsSaid) {
  JobPolicy policy;
  policy.min_nodes = policy.max_nodes = 2;
  policy.max_restarts = 3;
  policy.allow_chaos = true;
  job_.emplace("job", policy);
  Resume resume = resume_of_n2();
  resume.next_node = "n1";
  job_->step(FromAgent{"n2", resume}, start);
  join("n1");  // started anew
  EXPECT_EQ(refused({0, "", SIGKILL}),
            "nobody has said who had rank 0: 1 of 2 nodes of round 3 is gone without a word of it");
}

TEST_F(Rehearsal, ARankWhoseWorkersHaveEndedGetsNoSignal) {
  begin();
  job_->step(FromAgent{"n2", WorkersSucceeded{1}}, start);
  EXPECT_EQ(refused({2, "", SIGKILL}), "rank 2 on n2 has no process any more: " + job_->reason(start));
  begin();
  job_->step(FromAgent{"n2", WorkersSafe{1}}, start);
  EXPECT_EQ(ask({0, "", SIGKILL}).event,
            "an operator asked n1 to send SIGKILL to rank 0 if it still runs (musterctl chaos)");
  job_->step(FromAgent{"n1", WorkersStopped{1}}, start);
  EXPECT_EQ(refused({0, "", SIGKILL}), "rank 0 on n1 has no process any more: " + job_->reason(start));
}

TEST_F(Rehearsal, AJobThatIsOverHasNobodyToHurt) {
  begin();
  for (const char* node : {"n1", "n2"}) job_->step(FromAgent{node, WorkersSucceeded{1}}, start);
  ASSERT_TRUE(job_->over());
  EXPECT_EQ(refused({0, "", SIGKILL}), job_->reason(start));
  EXPECT_EQ(refused({std::nullopt, "n1", SIGKILL}), job_->reason(start));
}

}  // namespace
}  // namespace muster::rendezvous
