#include "rendezvous/client/in_process_link.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <vector>

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;

JobPolicy one_node(int max_restarts) {
  JobPolicy policy;
  policy.max_restarts = max_restarts;
  return policy;
}

NodeOffer offer(std::uint16_t store_port) {
  NodeOffer offer;
  offer.node = "n1";
  offer.address = "127.0.0.1";
  offer.store_port = store_port;
  offer.local_workers = 2;
  return offer;
}

WorkerFailed killed(int round, int rank) {
  WorkerFailed failed{round, {}};
  failed.failure.node = "n1";
  failed.failure.rank = rank;
  failed.failure.cause = ExitCause::signalled(SIGKILL);
  return failed;
}

class InProcessLinkTest : public ::testing::Test {
 protected:
  explicit InProcessLinkTest(int max_restarts = 1)
      : link(std::make_unique<InProcessLink>(io.get_executor(), "job", one_node(max_restarts))) {
    link->on_message([this](const DaemonMessage& message) { received.push_back(message); });
    link->start();
  }

  /// The answer to one message: exactly one is expected.
  DaemonMessage answer(AgentMessage message) {
    received.clear();
    link->send(std::move(message));
    EXPECT_TRUE(received.empty()) << "delivered from inside send()";
    settle();
    EXPECT_EQ(received.size(), 1u);
    return received.empty() ? DaemonMessage{} : received.front();
  }

  /// Runs what is ready; the join deadline's timer may stay.
  void settle() {
    io.restart();
    io.poll();
  }

  boost::asio::io_context io;
  std::unique_ptr<InProcessLink> link;
  std::vector<DaemonMessage> received;
};

TEST_F(InProcessLinkTest, OneNodeIsAssignedAllRanksAtOnce) {
  const auto assignment = std::get<Assignment>(answer(Join{offer(4000)}));
  EXPECT_EQ(assignment.round, 1);
  EXPECT_EQ(assignment.first_rank, 0);
  EXPECT_EQ(assignment.world_size, 2);
  EXPECT_EQ(assignment.group_world_size, 1);
  EXPECT_EQ(assignment.master_addr, "127.0.0.1");
  EXPECT_EQ(assignment.master_port, 4000);
  EXPECT_EQ(assignment.max_restarts, 1);
}

TEST_F(InProcessLinkTest, AFailedWorkerGivesANewRoundThenTheEnd) {
  answer(Join{offer(4000)});
  const auto stop = std::get<StopWorkers>(answer(killed(1, 1)));
  EXPECT_EQ(stop.round, 1);
  EXPECT_EQ(stop.reason, "restart 1 of 1 after rank 1 on n1 was killed by SIGKILL");
  link->send(WorkersStopped{1});
  const auto again = std::get<Assignment>(answer(Join{offer(4001)}));
  EXPECT_EQ(again.round, 2);
  EXPECT_EQ(again.restart_count, 1);
  EXPECT_EQ(again.master_port, 4001);
  const auto outcome = std::get<JobEnded>(answer(killed(2, 0))).outcome;
  EXPECT_EQ(outcome.kind, OutcomeKind::failed);
  EXPECT_EQ(outcome.reason, "rank 0 on n1 was killed by SIGKILL");
  EXPECT_EQ(outcome.restarts, std::vector<std::string>{"rank 1 (SIGKILL)"});
  EXPECT_EQ(outcome.max_restarts, 1);
  ASSERT_TRUE(outcome.first_failure);
  EXPECT_EQ(outcome.first_failure->rank, 0);
}

TEST_F(InProcessLinkTest, SuccessEndsTheJob) {
  answer(Join{offer(4000)});
  EXPECT_EQ(std::get<JobEnded>(answer(WorkersSucceeded{1})).outcome.kind, OutcomeKind::succeeded);
}

TEST_F(InProcessLinkTest, NothingIsDeliveredAfterCloseNorAfterDestruction) {
  link->send(Join{offer(4000)});
  link->close();
  settle();
  EXPECT_TRUE(received.empty());
  link->send(Join{offer(4000)});
  link.reset();
  settle();
  EXPECT_TRUE(received.empty());
}

TEST_F(InProcessLinkTest, AClosedLinkKeepsNoTimer) {
  answer(Join{offer(4000)});
  link->send(killed(1, 0));
  link->send(WorkersStopped{1});
  settle();
  EXPECT_FALSE(io.stopped()) << "the join deadline's timer is armed";
  link->close();
  settle();
  EXPECT_TRUE(io.stopped());
}

TEST_F(InProcessLinkTest, TheReceiverMayCloseTheLink) {
  link->on_message([this](const DaemonMessage& message) {
    received.push_back(message);
    link.reset();
  });
  link->send(Join{offer(4000)});
  settle();
  EXPECT_EQ(received.size(), 1u);
}

}  // namespace
}  // namespace muster::rendezvous
