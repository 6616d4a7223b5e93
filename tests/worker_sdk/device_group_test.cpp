#include "worker_sdk/src/device_group.hpp"

#include <gmock/gmock.h>

#include "tests/worker_sdk/fake_accelerator.hpp"
#include "tests/worker_sdk/memory_store.hpp"
#include "worker_sdk/src/connection_id.hpp"
#include "worker_sdk/src/failure_report.hpp"

namespace muster::worker::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Function>
std::string failure_of(const Function& function) {
  try {
    function();
  } catch (const CollectiveError& error) {
    return error.what();
  }
  ADD_FAILURE() << "it went well";
  return "";
}

DeviceGroupOptions options_of(int rank, int size, milliseconds timeout = seconds(60)) {
  return {.prefix = "test/device",
          .names = {},
          .rank = rank,
          .size = size,
          .join_timeout = seconds(20),
          .collective_timeout = timeout,
          .watch_interval = milliseconds(5)};
}

class DeviceGroup : public testing::Test {
 protected:
  std::unique_ptr<ProcessGroup> group(int rank, int size, milliseconds timeout = seconds(60)) {
    return make_device_group(accelerator_, store_, options_of(rank, size, timeout));
  }
  Buffer buffer() { return {values_.data(), values_.size(), ElementType::f32, Place::device}; }

  std::vector<float> values_ = std::vector<float>(10);
  FakeAccelerator accelerator_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
};

TEST_F(DeviceGroup, EveryRankConnectsByTheIdThatTheFirstHasMade) {
  const auto first = group(0, 2);
  FakeAccelerator other;
  other.id_to_make = "not this one";
  const auto second = make_device_group(other, store_, options_of(1, 2));
  EXPECT_EQ(accelerator_.connected_by, accelerator_.id_to_make) << "bytes of any value";
  EXPECT_EQ(other.connected_by, accelerator_.id_to_make);
}

TEST_F(DeviceGroup, ARankThatCannotMakeAnIdTellsTheOthersWhy) {
  accelerator_.id_fault = "fake:0: no network";
  EXPECT_EQ(failure_of([&] { group(0, 2); }), "fake:0: no network");
  EXPECT_EQ(failure_of([&] { group(1, 2); }), "rank 0 could not begin: fake:0: no network");
}

TEST_F(DeviceGroup, AnIdThatDoesNotComeIsWaitedForNoLongerThanAllowed) {
  auto options = options_of(1, 2);
  options.join_timeout = milliseconds(20);
  options.names = {.group = "node 1", .world = {4, 5}};
  EXPECT_EQ(failure_of([&] { make_device_group(accelerator_, store_, options); }),
            "connecting fake:0 with the other ranks: rank 4 has left no id within 0.02 s");
}

TEST_F(DeviceGroup, WhatIsNoIdIsRefused) {
  store_->set("test/device/connection-id", "id:" + std::string(5000, 'x'));
  EXPECT_THAT(failure_of([&] { group(1, 2); }),
              HasSubstr("something in the store that is no id (5003 bytes)"));
}

TEST_F(DeviceGroup, AGroupOfOneNeedsNoStore) {
  store_ = nullptr;
  const auto alone = group(0, 1);
  const auto work = alone->all_reduce(buffer(), ReduceOp::sum);
  EXPECT_FALSE(work->done());
  accelerator_.state->end_oldest();
  work->wait();
}

TEST_F(DeviceGroup, WorkIsDoneInTheOrderOfTheCalls) {
  const auto two = group(0, 2);
  const auto first = two->all_reduce(buffer(), ReduceOp::average);
  const auto second = two->broadcast(buffer(), 1);
  EXPECT_FALSE(first->wait_for(milliseconds(1)));
  accelerator_.state->end_oldest();
  EXPECT_TRUE(first->wait_for(seconds(20)));
  EXPECT_FALSE(second->done());
  accelerator_.state->end_oldest();
  second->wait();
  EXPECT_THAT(accelerator_.state->calls, ElementsAre("all_reduce", "broadcast"));
}

TEST_F(DeviceGroup, ATimeoutNamesOperationNumberAndWhoHasNotCome) {
  const auto three = group(0, 3, milliseconds(30));
  store_->set("test/device/last-words/2",
              encode_last_words({.operation = "barrier #1", .timed_out = true, .lost = {}}));
  const auto work = three->all_reduce(buffer(), ReduceOp::sum);
  EXPECT_EQ(failure_of([&] { work->wait(); }),
            "all_reduce #1 (sum, 10 x F32) timed out after 0.03 s: rank 1 has not arrived; rank 2 is in "
            "barrier #1");
  EXPECT_TRUE(accelerator_.state->aborted);
  EXPECT_THAT(failure_of([&] { three->broadcast(buffer(), 0)->wait(); }),
              HasSubstr("broadcast #2 (from rank 0, 10 x F32): the group is broken: all_reduce #1"));
}

TEST_F(DeviceGroup, ADeadlineCountsFromWhenAnOperationIsTheOldest) {
  const auto two = group(0, 2, seconds(60));
  const auto first = two->all_reduce(buffer(), ReduceOp::sum);
  const auto second = two->all_reduce(buffer(), ReduceOp::sum);
  accelerator_.state->end_oldest();
  accelerator_.state->end_oldest();
  first->wait();
  second->wait();
}

TEST_F(DeviceGroup, AFaultThatComesByItselfEndsWhatIsUnderWay) {
  const auto two = group(0, 2);
  const auto work = two->all_reduce(buffer(), ReduceOp::sum);
  {
    const std::lock_guard lock(accelerator_.state->mutex);
    accelerator_.state->found = "fake:0: NCCL: remote process exited";
  }
  EXPECT_EQ(failure_of([&] { work->wait(); }),
            "all_reduce #1 (sum, 10 x F32): fake:0: NCCL: remote process exited");
  EXPECT_TRUE(accelerator_.state->aborted);
}

TEST_F(DeviceGroup, ACallThatFailsBreaksTheGroupAtOnce) {
  const auto two = group(0, 2);
  accelerator_.state->next_call = "fake:0: ncclAllReduce: invalid argument";
  const auto work = two->all_reduce(buffer(), ReduceOp::sum);
  EXPECT_TRUE(work->done());
  EXPECT_THAT(failure_of([&] { work->wait(); }), HasSubstr("ncclAllReduce: invalid argument"));
}

TEST_F(DeviceGroup, AbortEndsWhatIsUnderWay) {
  const auto two = group(0, 2);
  const auto work = two->all_reduce(buffer(), ReduceOp::sum);
  two->abort();
  EXPECT_THAT(failure_of([&] { work->wait(); }), HasSubstr("this rank has closed it"));
  accelerator_.state->end_oldest();  // a late word of the device changes nothing
}

TEST_F(DeviceGroup, AnEndThatComesAfterTheGroupIsGoneHarmsNobody) {
  auto two = group(0, 2);
  const auto work = two->all_reduce(buffer(), ReduceOp::sum);
  two = nullptr;
  EXPECT_TRUE(work->done());
  accelerator_.state->end_oldest();
}

TEST_F(DeviceGroup, ARankThatCannotConnectSaysWhy) {
  accelerator_.connect_fault = "fake:0: not done in time: some rank has not come";
  EXPECT_EQ(failure_of([&] { group(0, 2); }), "fake:0: not done in time: some rank has not come");
}

TEST_F(DeviceGroup, WrongCallsAreRefusedAndBreakNothing) {
  const auto two = group(0, 2);
  std::vector<std::int32_t> whole(4);
  const Buffer integers{whole.data(), whole.size(), ElementType::i32, Place::device};
  EXPECT_THROW(two->all_reduce(integers, ReduceOp::average), std::invalid_argument);
  EXPECT_THROW(two->broadcast(buffer(), 2), std::invalid_argument);
  EXPECT_THROW(two->all_gather(buffer(), buffer()), std::invalid_argument);
  EXPECT_TRUE(accelerator_.state->calls.empty());
}

}  // namespace
}  // namespace muster::worker::test
