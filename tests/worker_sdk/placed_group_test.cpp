#include "worker_sdk/src/placed_group.hpp"

#include <gmock/gmock.h>

#include "tests/worker_sdk/fake_accelerator.hpp"
#include "tests/worker_sdk/ranks.hpp"
#include "worker_sdk/src/device_group.hpp"
#include "worker_sdk/src/single_group.hpp"

namespace muster::worker::test {
namespace {

using testing::Each;
using testing::ElementsAre;

Buffer on_device(std::vector<float>& values) {
  return {values.data(), values.size(), ElementType::f32, Place::device};
}

/// Two ranks of Gloo, each with a fake device.
std::vector<std::string> errors_of_placed(const std::function<void(ProcessGroup&, FakeAccelerator&)>& body) {
  auto store = std::make_shared<MemoryStore>();
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      try {
        FakeAccelerator accelerator;
        const auto group = make_placed_group(
            make_gloo_group(gloo_options(rank, 2, std::chrono::seconds(30)), store), nullptr, accelerator);
        body(*group, accelerator);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

TEST(PlacedGroup, WhatLiesOnADeviceTravelsThroughTheHost) {
  const auto errors = errors_of_placed([](ProcessGroup& group, FakeAccelerator& accelerator) {
    const auto own = static_cast<float>(group.rank());
    std::vector<float> sum{own, 1};
    group.all_reduce(on_device(sum), ReduceOp::sum)->wait();
    EXPECT_THAT(sum, ElementsAre(1, 2));

    std::vector<float> root{own + 5};
    group.broadcast(on_device(root), 1)->wait();
    EXPECT_THAT(root, ElementsAre(6));

    std::vector<float> one{own};
    std::vector<float> all(2);
    group.all_gather(on_device(one), on_device(all))->wait();
    EXPECT_THAT(all, ElementsAre(0, 1));

    std::vector<float> part(1);
    group.reduce_scatter(on_device(all), on_device(part), ReduceOp::sum)->wait();
    EXPECT_THAT(part, ElementsAre(2 * own));

    std::vector<float> some(group.rank() == 0 ? 1 : 2, own);
    std::vector<float> uneven(3, 9);
    const std::size_t counts[] = {1, 2};
    group.all_gather_uneven(on_device(some), on_device(uneven), counts)->wait();
    EXPECT_THAT(uneven, ElementsAre(0, 1, 1));

    std::vector<float> letter{7};
    if (group.rank() == 0)
      group.send(on_device(letter), 1)->wait();
    else
      group.receive(on_device(letter), 0)->wait();
    EXPECT_THAT(letter, ElementsAre(7));
    EXPECT_GT(accelerator.copies_in, 3);
    EXPECT_GT(accelerator.copies_out, 3);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(PlacedGroup, TheHostsBuffersNeverPassTheDevice) {
  const auto errors = errors_of_placed([](ProcessGroup& group, FakeAccelerator& accelerator) {
    std::vector<float> sum{1};
    group.all_reduce(buffer_of(std::span(sum)), ReduceOp::sum)->wait();
    group.barrier()->wait();
    EXPECT_THAT(sum, ElementsAre(2));
    EXPECT_EQ(accelerator.copies_in + accelerator.copies_out, 0);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(PlacedGroup, BuffersOfADeviceGoThroughItsOwnGroup) {
  FakeAccelerator accelerator;
  auto device = make_device_group(accelerator, nullptr, {.prefix = "test", .names = {}});
  const auto group = make_placed_group(make_single_group(), std::move(device), accelerator);
  std::vector<float> values{3};
  const auto work = group->all_reduce(on_device(values), ReduceOp::sum);
  accelerator.state->end_oldest();
  work->wait();
  group->all_reduce(buffer_of(std::span(values)), ReduceOp::sum)->wait();
  EXPECT_THAT(accelerator.state->calls, ElementsAre("all_reduce")) << "the host's did not";
  EXPECT_EQ(group->backend(), "single+fake");
}

TEST(PlacedGroup, MemoryOfTwoKindsInOneCallIsRefused) {
  FakeAccelerator accelerator;
  const auto group = make_placed_group(make_single_group(), nullptr, accelerator);
  std::vector<float> a(1), b(1);
  EXPECT_THROW(group->all_gather(on_device(a), buffer_of(std::span(b))), std::invalid_argument);
  EXPECT_THROW(group->reduce_scatter(buffer_of(std::span(a)), on_device(b), ReduceOp::sum),
               std::invalid_argument);
}

TEST(PlacedGroup, ACopyThatFailsIsTheErrorOfTheOperation) {
  FakeAccelerator accelerator;
  const auto group = make_placed_group(make_single_group(), nullptr, accelerator);
  std::vector<float> values(1);
  accelerator.copy_fault = "fake:0: cudaMemcpyAsync: an illegal memory access was encountered";
  EXPECT_THROW(group->all_reduce(on_device(values), ReduceOp::sum), CollectiveError);
}

}  // namespace
}  // namespace muster::worker::test
