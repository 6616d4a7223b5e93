#include "rendezvous/store/stall.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/store/known_keys.hpp"

namespace muster::rendezvous {
namespace {

using Keys = std::vector<std::string>;

/// A round of four: ranks 0 and 1 on the store's host, 2 and 3 elsewhere.
struct Stalled {
  Stalled() {
    round.world_size = 4;
    round.local_workers = {{0, 100}, {1, 101}};
    view.own_address = "10.0.0.1";
    view.late = true;
  }
  Stalled& joined(const std::string& host, std::uint32_t pid, Keys set, Keys waits_for) {
    StoreDiagnosis::Connection connection;
    connection.peer = host + ":" + std::to_string(40000 + view.diagnosis.connections.size());
    connection.pid = pid;
    connection.joined = true;
    connection.keys_set = std::move(set);
    connection.waiting_periods = waits_for.empty() ? 0 : 5;
    connection.waits_for = std::move(waits_for);
    view.diagnosis.connections.push_back(connection);
    view.diagnosis.joined = view.diagnosis.joined.value_or(0) + 1;
    return *this;
  }
  std::string text() const { return describe_stall(view, round).value_or("(nothing)"); }

  StallView view;
  StoreRound round;
};

std::string gloo(int rank) { return "/default_pg/0//cpu//0/" + std::to_string(rank); }

TEST(StoreStall, NamesTheRankThatTheOthersWaitFor) {
  Stalled stalled;
  stalled.joined("10.0.0.1", 100, {gloo(0)}, {gloo(1)});
  stalled.joined("10.0.0.2", 7, {gloo(2)}, {gloo(1)});
  stalled.joined("10.0.0.2", 8, {gloo(3)}, {gloo(1)});
  EXPECT_EQ(stalled.text(),
            "ranks 0, 2-3 wait for rank 1's gloo address; rank 1 (pid 101) has not connected");
}

TEST(StoreStall, ARankThatIsThereAndSilentIsSaidToBeConnected) {
  Stalled stalled;
  stalled.joined("127.0.0.1", 100, {}, {});
  stalled.joined("10.0.0.1", 101, {gloo(1)}, {gloo(0)});
  stalled.joined("10.0.0.2", 7, {gloo(2)}, {gloo(0)});
  stalled.joined("10.0.0.2", 8, {gloo(3)}, {gloo(0)});
  EXPECT_EQ(stalled.text(), "ranks 1-3 wait for rank 0's gloo address; rank 0 (pid 100) is connected");
}

TEST(StoreStall, MissingRanksAreNamedOnlyIfAllOthersAreKnown) {
  Stalled known;
  known.joined("10.0.0.1", 100, {}, {}).joined("10.0.0.2", 7, {gloo(2)}, {});
  EXPECT_EQ(known.text(), "ranks 1, 3 have not connected");
  Stalled unknown;
  unknown.joined("10.0.0.1", 100, {}, {}).joined("10.0.0.2", 0, {}, {});
  EXPECT_EQ(unknown.text(), "2 of 4 workers have connected");
  unknown.view.late = false;
  EXPECT_EQ(unknown.text(), "(nothing)");
}

TEST(StoreStall, NothingIsSaidOfARoundThatGetsOnOrUsesNoStore) {
  Stalled stalled;
  EXPECT_EQ(stalled.text(), "(nothing)");
  for (int rank = 0; rank < 4; ++rank) stalled.joined("10.0.0.2", 0, {gloo(rank)}, {});
  EXPECT_EQ(stalled.text(), "(nothing)");
  stalled.view.diagnosis.connections[0].waits_for = {"/x"};
  stalled.view.diagnosis.connections[0].waiting_periods = 4;
  stalled.view.periods_long = 5;
  EXPECT_EQ(stalled.text(), "(nothing)") << "not long enough";
}

TEST(StoreStall, AForeignProcessIdIsNoLocalRank) {
  Stalled stalled;
  stalled.joined("10.0.0.2", 100, {}, {"/x"});
  EXPECT_EQ(stalled.text(), "the worker at 10.0.0.2:40000 waits for key '/x'; 1 of 4 workers have connected");
}

/// The same round as two nodes see it.
struct StalledOnTwoNodes : Stalled {
  StalledOnTwoNodes() { round.nodes = {{"a", "10.0.0.1", 0, 2}, {"b", "10.0.0.2", 2, 2}}; }
};

TEST(StoreStall, ARankOfAnotherNodeIsNamedWithItsNodeAndAddress) {
  StalledOnTwoNodes stalled;
  stalled.joined("10.0.0.1", 100, {gloo(0)}, {gloo(3)});
  stalled.joined("10.0.0.1", 101, {gloo(1)}, {gloo(3)});
  stalled.joined("10.0.0.2", 7, {gloo(2)}, {gloo(3)});
  EXPECT_EQ(stalled.text(),
            "ranks 0-2 wait for rank 3's gloo address; rank 3 (node b at 10.0.0.2) has not connected");
  StalledOnTwoNodes own;
  own.joined("10.0.0.1", 100, {gloo(0)}, {gloo(1)});
  own.joined("10.0.0.2", 7, {gloo(2)}, {gloo(1)}).joined("10.0.0.2", 8, {gloo(3)}, {gloo(1)});
  EXPECT_EQ(own.text(),
            "ranks 0, 2-3 wait for rank 1's gloo address; rank 1 (node a, pid 101) has not connected");
}

TEST(StoreStall, ARankOfAnotherNodeThatHasSetNothingIsNamedToo) {
  StalledOnTwoNodes all_here;
  all_here.joined("10.0.0.1", 100, {gloo(0)}, {gloo(3)}).joined("10.0.0.1", 101, {gloo(1)}, {});
  all_here.joined("10.0.0.2", 7, {gloo(2)}, {}).joined("10.0.0.2", 8, {}, {});
  EXPECT_EQ(all_here.text(),
            "rank 0 waits for rank 3's gloo address; rank 3 (node b at 10.0.0.2) is connected");
  for (auto& node : all_here.round.nodes) node.address = "10.0.0.9";  // no address tells a node
  EXPECT_EQ(all_here.text(),
            "rank 0 waits for rank 3's gloo address; rank 3 (node b at 10.0.0.9) is connected");
  StalledOnTwoNodes one_of_two;
  one_of_two.view.late = false;
  one_of_two.joined("10.0.0.1", 100, {gloo(0)}, {gloo(3)}).joined("10.0.0.2", 8, {}, {});
  EXPECT_EQ(one_of_two.text(),
            "rank 0 waits for rank 3's gloo address; rank 3 (node b at 10.0.0.2) has not written it");
  StalledOnTwoNodes alone;  // on its node: who comes from there is that rank
  alone.round.nodes = {{"a", "10.0.0.1", 0, 3}, {"b", "10.0.0.2", 3, 1}};
  alone.view.late = false;
  alone.joined("10.0.0.1", 100, {gloo(0)}, {gloo(3)}).joined("10.0.0.2", 4711, {}, {});
  EXPECT_EQ(alone.text(),
            "rank 0 waits for rank 3's gloo address; rank 3 (node b at 10.0.0.2, pid 4711) is connected");
}

TEST(StoreStall, MissingNodesAreNamedThoughTheOthersRanksAreNotKnown) {
  StalledOnTwoNodes stalled;
  stalled.joined("10.0.0.1", 0, {}, {}).joined("10.0.0.1", 0, {}, {});
  EXPECT_EQ(stalled.text(),
            "2 of 4 workers have connected; ranks 2-3 (node b at 10.0.0.2) have not connected");
  StalledOnTwoNodes from_elsewhere;  // perhaps b, by another of its addresses
  from_elsewhere.joined("10.0.0.1", 0, {}, {}).joined("10.9.9.9", 0, {}, {});
  EXPECT_EQ(from_elsewhere.text(), "2 of 4 workers have connected");
  StalledOnTwoNodes one_host;  // two launchers on it: an address tells no node
  one_host.round.nodes[1].address = "10.0.0.1";
  one_host.joined("10.0.0.1", 0, {}, {}).joined("10.0.0.1", 0, {}, {});
  EXPECT_EQ(one_host.text(), "2 of 4 workers have connected");
}

TEST(StoreStall, OfManyMissingRanksTheNodesAreNamedWhileTheyAreFew) {
  StalledOnTwoNodes stalled;
  stalled.joined("10.0.0.1", 100, {gloo(0)}, {});
  EXPECT_EQ(stalled.text(), "rank 1 (node a, pid 101) and ranks 2-3 (node b at 10.0.0.2) have not connected");
  Stalled many;
  many.round.world_size = 8;
  for (int i = 0; i < 8; ++i)
    many.round.nodes.push_back({"n" + std::to_string(i), "10.0.1." + std::to_string(i), i, 1});
  many.joined("10.0.1.0", 0, {gloo(0)}, {});
  EXPECT_EQ(many.text(), "ranks 1-7 have not connected");
}

TEST(StoreStall, MoreJoinedThanTheWorldHasAskForAnotherJob) {
  EXPECT_EQ(describe_crowd(2, 2), std::nullopt);
  EXPECT_EQ(describe_crowd(6, 2), "6 workers joined a world of 2: is another job using this port?");
  Stalled stalled;  // one worker with two stores, and two old clients that say no process id
  stalled.joined("10.0.0.1", 100, {}, {}).joined("10.0.0.1", 100, {}, {});
  stalled.joined("10.0.0.2", 0, {}, {}).joined("10.0.0.2", 0, {}, {});
  EXPECT_EQ(joined_now(stalled.view.diagnosis), 3);
}

TEST(StoreStall, ManyWaitsAreCut) {
  Stalled stalled;
  stalled.view.late = false;
  for (int i = 0; i < 4; ++i) stalled.joined("10.0.0.2", 0, {}, {"/same"});
  for (int i = 0; i < 6; ++i) stalled.joined("10.0.0.2", 0, {}, {"/k" + std::to_string(i)});
  EXPECT_THAT(stalled.text(), testing::StartsWith("4 other workers wait for key '/same'; the worker at "));
  EXPECT_THAT(stalled.text(), testing::EndsWith("; 3 more keys are waited for"));
}

TEST(StoreStall, EveryKnownShapeOfAKeyNamesItsOwner) {
  const std::pair<const char*, const char*> shapes[] = {
      {"/default_pg/0//cpu//0/7", "rank 7's gloo address"},
      {"//worker/attempt_3/default_pg/0/0/7", "rank 7's gloo address"},
      {"//worker/attempt_0/default_pg/0/0/rank_2", "rank 2's host name for gloo"},
      {"//worker/attempt_0/default_pg/0//cpu//0/1", "rank 1's gloo address"},
      {"/default_pg/0//1//cpu//0/1", "the gloo address of member 1 (from 0) in group 1"},
      {"/default_pg/0//cuda//0", "rank 0's NCCL id"},
      {"/default_pg/0//5//cuda//0", "the NCCL id of member 0 (from 0) in group 5"},
      {"/default_pg/0//cuda//2:5", "rank 2's NCCL id for the pair 2:5"},
      {"//worker/attempt_0/default_pg/0/0", "rank 0's NCCL id"},
      {"//worker/attempt_0/default_pg/step/5", "key '//worker/attempt_0/default_pg/step/5'"},
      {"//worker/attempt_0/default_pg/1/SEQ_NUM_STORE_KEY",
       "the sequence number of member 0 (from 0) in group 1"},
      {"/default_pg/store_based_barrier_key:0:last_worker", "the last arrival at the barrier"},
      {"/default_pg/store_based_barrier_key:3:last_worker", "the last arrival at the barrier in group 3"},
      {"store_based_barrier_key:last_worker", "key 'store_based_barrier_key:last_worker'"},
      {"store_based_barrier_key::last_worker", "the last arrival at the barrier"},
      {"/muster/round-2/restart-1/world/address/4", "rank 4's address"},
      {"/default_pg/0//cpu//0/7/8", "key '/default_pg/0//cpu//0/7/8'"},
      {"/default_pg", "key '/default_pg'"},
      {"/cpu//0/1", "key '/cpu//0/1'"},
      {"a\nb", "key 'a\\x0ab'"},
      {"", "key ''"}};
  for (const auto& [key, text] : shapes) EXPECT_EQ(awaited_text(key), text) << key;
}

}  // namespace
}  // namespace muster::rendezvous
