#include "worker_sdk/src/gloo_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <mutex>
#include <numeric>
#include <random>

#include "tests/worker_sdk/ranks.hpp"

namespace muster::worker {
namespace {

using namespace std::chrono_literals;
using test::errors_of_ranks;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

template <class T>
Buffer buffer(std::vector<T>& values) {
  return buffer_of(std::span<T>(values));
}

/// None, fewer than ranks, more, and several segments that do not divide evenly.
const std::vector<std::size_t> counts{0, 1, 3, 1000, 300'001};

class GlooGroupTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, GlooGroupTest, testing::Values(2, 3, 5, 9),
                         testing::PrintToStringParamName());

TEST_P(GlooGroupTest, AllReduceAddsUpOverAllRanks) {
  const int size = GetParam();
  const auto errors = errors_of_ranks(size, [&](ProcessGroup& group) {
    for (auto count : {0UL, 1UL, 2UL, 3UL, 7UL, 1000UL, 600'001UL}) {
      std::vector<std::int64_t> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(i) * 10 + group.rank();
      group.all_reduce(buffer(values), ReduceOp::sum)->wait();
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(values[i], static_cast<std::int64_t>(i) * 10 * size + size * (size - 1) / 2)
            << count << " " << i;
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GlooGroupTest, AllReduceAverageMinAndMax) {
  const int size = GetParam();
  const auto errors = errors_of_ranks(size, [&](ProcessGroup& group) {
    const auto own = static_cast<float>(group.rank());
    std::vector<float> average{own, 1};
    std::vector<float> least{own, -own};
    std::vector<float> most{own, -own};
    group.all_reduce(buffer(average), ReduceOp::average)->wait();
    group.all_reduce(buffer(least), ReduceOp::min)->wait();
    group.all_reduce(buffer(most), ReduceOp::max)->wait();
    const auto last = static_cast<float>(size - 1);
    EXPECT_EQ(average, (std::vector<float>{last / 2, 1}));
    EXPECT_EQ(least, (std::vector<float>{0, -last}));
    EXPECT_EQ(most, (std::vector<float>{last, 0}));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GlooGroupTest, ReduceScatterGivesEachRankItsPartAndKeepsTheInput) {
  const int size = GetParam();
  const auto ranks = static_cast<std::size_t>(size);
  const auto errors = errors_of_ranks(size, [&](ProcessGroup& group) {
    for (auto count : counts) {
      std::vector<std::int64_t> input(count * ranks);
      std::iota(input.begin(), input.end(), std::int64_t{group.rank()});
      const auto before = input;
      std::vector<std::int64_t> output(count);
      group.reduce_scatter(buffer(input), buffer(output), ReduceOp::sum)->wait();
      EXPECT_EQ(input, before);
      for (std::size_t i = 0; i < count; ++i) {
        const auto index = static_cast<std::int64_t>(i + count * static_cast<std::size_t>(group.rank()));
        ASSERT_EQ(output[i], index * size + size * (size - 1) / 2) << count << " " << i;
      }
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GlooGroupTest, AllGatherPutsTheRanksInOrder) {
  const int size = GetParam();
  const auto ranks = static_cast<std::size_t>(size);
  const auto errors = errors_of_ranks(size, [&](ProcessGroup& group) {
    for (auto count : counts) {
      std::vector<std::int32_t> input(count, group.rank());
      std::vector<std::int32_t> output(count * ranks, -1);
      group.all_gather(buffer(input), buffer(output))->wait();
      for (std::size_t i = 0; i < output.size(); ++i)
        ASSERT_EQ(output[i], static_cast<std::int32_t>(i / count));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GlooGroupTest, AllGatherUnevenAlsoWithNothingFromSomeRanks) {
  const int size = GetParam();
  const auto errors = errors_of_ranks(size, [&](ProcessGroup& group) {
    for (std::size_t unit : {0UL, 1UL, 200'000UL}) {
      std::vector<std::size_t> sizes;
      for (int r = 0; r < size; ++r) sizes.push_back(static_cast<std::size_t>(r) * unit);
      std::vector<float> input(sizes[static_cast<std::size_t>(group.rank())],
                               static_cast<float>(group.rank()));
      std::vector<float> output(std::accumulate(sizes.begin(), sizes.end(), 0UL));
      group.all_gather_uneven(buffer(input), buffer(output), sizes)->wait();
      std::vector<float> expected;
      for (int r = 0; r < size; ++r)
        expected.insert(expected.end(), sizes[static_cast<std::size_t>(r)], static_cast<float>(r));
      EXPECT_TRUE(output == expected);
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GlooGroupTest, BroadcastFromEveryRoot) {
  const int size = GetParam();
  const auto errors = errors_of_ranks(size, [&](ProcessGroup& group) {
    for (int root = 0; root < size; ++root)
      for (auto count : counts) {
        std::vector<std::int32_t> values(count, group.rank());
        group.broadcast(buffer(values), root)->wait();
        EXPECT_TRUE(values == std::vector<std::int32_t>(count, root));
      }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

/// Around the ring in many pieces, also where smaller ones go down a tree.
TEST_P(GlooGroupTest, BroadcastOfWhatIsLarge) {
  const int root = GetParam() / 2;
  const auto errors = errors_of_ranks(GetParam(), [&](ProcessGroup& group) {
    std::vector<std::int32_t> values(700'001, -1);
    if (group.rank() == root) std::iota(values.begin(), values.end(), 0);
    group.broadcast(buffer(values), root)->wait();
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<std::int32_t>(i));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GlooGroupTest, NobodyLeavesABarrierBeforeTheLastCame) {
  const int size = GetParam();
  std::atomic<int> arrived{0};
  const auto errors = errors_of_ranks(size, [&](ProcessGroup& group) {
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      group.barrier()->wait();
      EXPECT_GE(arrived.load(), round * size);
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GlooGroupTest, SendAndReceiveInAnyOrderAcrossPeers) {
  const int size = GetParam();
  const auto errors = errors_of_ranks(size, [&](ProcessGroup& group) {
    // All send before they receive, and receive from the last rank first: ordered per peer only, so no
    // deadlock.
    std::vector<std::vector<std::int32_t>> out(static_cast<std::size_t>(size),
                                               std::vector<std::int32_t>(50'000, group.rank()));
    std::vector<std::vector<std::int32_t>> in(static_cast<std::size_t>(size),
                                              std::vector<std::int32_t>(50'000));
    std::vector<std::shared_ptr<Work>> works;
    for (int peer = 0; peer < size; ++peer)
      if (peer != group.rank())
        works.push_back(group.send(buffer(out[static_cast<std::size_t>(peer)]), peer));
    for (int peer = size - 1; peer >= 0; --peer)
      if (peer != group.rank())
        works.push_back(group.receive(buffer(in[static_cast<std::size_t>(peer)]), peer));
    for (auto& work : works) work->wait();
    for (int peer = 0; peer < size; ++peer) {
      if (peer == group.rank()) continue;
      EXPECT_TRUE(in[static_cast<std::size_t>(peer)] == std::vector<std::int32_t>(50'000, peer));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(GlooGroup, QueuedOperationsRunInOrderWhileTheCallerGoesOn) {
  const auto errors = errors_of_ranks(2, [](ProcessGroup& group) {
    std::vector<std::vector<float>> values(200, std::vector<float>(100));
    std::vector<std::shared_ptr<Work>> works;
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::fill(values[i].begin(), values[i].end(), static_cast<float>(i));
      works.push_back(group.all_reduce(buffer(values[i]), ReduceOp::sum));
    }
    works.back()->wait();
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_TRUE(works[i]->done()) << "an earlier one is done when a later one is";
      EXPECT_EQ(values[i][7], 2 * static_cast<float>(i));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

/// Values whose sum depends on the order of the additions.
std::vector<float> rough_values(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (auto& value : values) value = normal(random) * std::exp2(normal(random) * 10);
  return values;
}

std::vector<std::string> bits_of_an_all_reduce(int size) {
  std::vector<std::string> results(static_cast<std::size_t>(size));
  const auto errors = errors_of_ranks(size, [&](ProcessGroup& group) {
    auto values = rough_values(group.rank(), 150'007);
    group.all_reduce(buffer(values), ReduceOp::average)->wait();
    results[static_cast<std::size_t>(group.rank())] = {reinterpret_cast<const char*>(values.data()),
                                                       values.size() * 4};
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  return results;
}

TEST(GlooGroup, TheSameBitsOnEveryRankAndInEveryRun) {
  for (int size : {2, 3, 4}) {
    const auto first = bits_of_an_all_reduce(size);
    const auto second = bits_of_an_all_reduce(size);
    for (const auto& bits : first) EXPECT_TRUE(bits == first.front());
    EXPECT_TRUE(first == second);
  }
}

TEST(GlooGroup, ReduceScatterAndGatherGiveTheBitsOfAnAllReduce) {
  constexpr std::size_t part = 50'003;
  const auto errors = errors_of_ranks(3, [](ProcessGroup& group) {
    auto values = rough_values(group.rank(), 3 * part);
    std::vector<float> own(part);
    std::vector<float> all(3 * part);
    group.reduce_scatter(buffer(values), buffer(own), ReduceOp::sum)->wait();
    group.all_gather(buffer(own), buffer(all))->wait();
    group.all_reduce(buffer(values), ReduceOp::sum)->wait();
    EXPECT_EQ(std::memcmp(values.data(), all.data(), values.size() * 4), 0);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(GlooGroup, CallsThatCannotBeRightBreakNothing) {
  const auto errors = errors_of_ranks(2, [](ProcessGroup& group) {
    std::vector<float> three(3);
    std::vector<double> doubles(6);
    std::vector<std::int32_t> integers(2);
    const std::vector<std::size_t> wrong{1, 1};
    const Buffer of_no_type{three.data(), 1, static_cast<ElementType>(99)};
    EXPECT_THROW((void)group.all_reduce(of_no_type, ReduceOp::sum), std::invalid_argument);
    EXPECT_THROW((void)group.all_reduce(buffer(three), static_cast<ReduceOp>(99)), std::invalid_argument);
    EXPECT_THROW((void)group.broadcast(buffer(three), 2), std::invalid_argument);
    EXPECT_THROW((void)group.broadcast(buffer(three), -1), std::invalid_argument);
    EXPECT_THROW((void)group.all_reduce(buffer(integers), ReduceOp::average), std::invalid_argument);
    EXPECT_THROW((void)group.reduce_scatter(buffer(three), buffer(three), ReduceOp::sum),
                 std::invalid_argument);
    EXPECT_THROW((void)group.all_gather(buffer(three), buffer(doubles)), std::invalid_argument);
    EXPECT_THROW((void)group.all_gather_uneven(buffer(three), buffer(three), wrong), std::invalid_argument);
    EXPECT_THROW((void)group.send(buffer(three), group.rank()), std::invalid_argument);
    EXPECT_THROW((void)group.receive(buffer(three), 7), std::invalid_argument);
    const Buffer nowhere{.count = 3};
    Buffer on_device = buffer(three);
    on_device.place = Place::device;
    std::vector<float> six(6);
    for (const Buffer& unusable : {nowhere, on_device}) {
      EXPECT_THROW((void)group.broadcast(unusable, 0), std::invalid_argument);
      EXPECT_THROW((void)group.all_reduce(unusable, ReduceOp::sum), std::invalid_argument);
      EXPECT_THROW((void)group.send(unusable, 1 - group.rank()), std::invalid_argument);
      EXPECT_THROW((void)group.receive(unusable, 1 - group.rank()), std::invalid_argument);
      EXPECT_THROW((void)group.all_gather(unusable, buffer(six)), std::invalid_argument);
      EXPECT_THROW((void)group.reduce_scatter(buffer(six), unusable, ReduceOp::sum), std::invalid_argument);
    }
    group.broadcast({.count = 0}, 0)->wait();
    group.barrier()->wait();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

/// Keeps a rank from leaving, and so from closing its connections, before the others are done.
class Gate {
 public:
  void open() { promise_.set_value(); }
  void wait() const { opened_.wait(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

TEST(GlooGroup, ATimeoutNamesTheRankThatDidNotArrive) {
  Gate gate;
  std::atomic<int> failed{0};
  const auto errors = errors_of_ranks(
      4,
      [&](ProcessGroup& group) {
        group.barrier()->wait();
        if (group.rank() == 2) return gate.wait();
        std::vector<float> values(1000);
        try {
          group.all_reduce(buffer(values), ReduceOp::sum)->wait();
        } catch (const CollectiveError&) {
          if (++failed == 3) gate.open();
          throw;
        }
      },
      1s);
  EXPECT_EQ(errors[2], "");
  int timed_out = 0;
  for (int rank : {0, 1, 3}) {
    const auto& error = errors[static_cast<std::size_t>(rank)];
    EXPECT_THAT(error, HasSubstr("all_reduce #2 (sum, 1000 x F32)"));
    EXPECT_THAT(error, HasSubstr("timed out"));
    if (error.find("rank 2 has not arrived") != std::string::npos) ++timed_out;
  }
  EXPECT_GE(timed_out, 1) << testing::PrintToString(errors);
}

TEST(GlooGroup, ARankThatTookAnotherBranchIsNamedWithWhatItCalled) {
  const auto errors = errors_of_ranks(
      3,
      [](ProcessGroup& group) {
        group.barrier()->wait();
        std::vector<float> values(10);
        if (group.rank() == 1)
          group.broadcast(buffer(values), 0)->wait();
        else
          group.all_reduce(buffer(values), ReduceOp::sum)->wait();
      },
      1s);
  EXPECT_THAT(errors, Each(testing::Not(IsEmpty())));
  EXPECT_THAT(errors[0], AllOf(HasSubstr("all_reduce #2 (sum, 10 x F32)"),
                               HasSubstr("broadcast #2 (from rank 0, 10 x F32)")));
}

TEST(GlooGroup, ShapesThatDifferTimeOutAndAreBothNamed) {
  const auto errors = errors_of_ranks(
      2,
      [](ProcessGroup& group) {
        group.barrier()->wait();
        std::vector<float> values(group.rank() == 0 ? 1000 : 999);
        group.all_reduce(buffer(values), ReduceOp::sum)->wait();
      },
      1s);
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("1000 x F32"), HasSubstr("999 x F32"))));
}

TEST(GlooGroup, CountsThatDifferInABroadcastAreBothNamedBeforeWhoHasLeft) {
  const auto errors = errors_of_ranks(
      3,
      [](ProcessGroup& group) {
        std::vector<float> values(group.rank() == 1 ? 20 : 10);
        group.broadcast(buffer(values), 0)->wait();
      },
      1s);
  EXPECT_THAT(errors[0], AllOf(testing::StartsWith("broadcast #1 (from rank 0, 10 x F32)"),
                               HasSubstr(": rank 1 is in broadcast #1 (from rank 0, 20 x F32)"),
                               testing::Not(HasSubstr("ranks 0")), testing::Not(HasSubstr("to rank 0"))));
  EXPECT_THAT(errors[1], HasSubstr("20 x F32"));
  EXPECT_THAT(errors[2], HasSubstr(": rank 1 is in broadcast #1 (from rank 0, 20 x F32)"));
}

TEST(GlooGroup, ARankThatLeavesFailsTheOthersAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = errors_of_ranks(
      3,
      [](ProcessGroup& group) {
        std::vector<float> values(100);
        group.all_reduce(buffer(values), ReduceOp::sum)->wait();
        if (group.rank() == 1) return;
        group.all_reduce(buffer(values), ReduceOp::sum)->wait();
      },
      60s);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(errors[0], "all_reduce #2 (sum, 100 x F32): lost the connection to rank 1");
  EXPECT_EQ(errors[2], errors[0]);
}

TEST(GlooGroup, AfterAFailureEverythingElseFailsWithItsCause) {
  const auto errors = errors_of_ranks(2, [](ProcessGroup& group) {
    if (group.rank() == 1) return;
    std::vector<float> values(100);
    const auto first = group.all_reduce(buffer(values), ReduceOp::sum);
    const auto queued = group.barrier();
    EXPECT_THROW(first->wait(), CollectiveError);
    EXPECT_THROW(first->wait(), CollectiveError) << "the second wait says the same";
    EXPECT_TRUE(first->done());
    EXPECT_THROW(queued->wait(), CollectiveError);
    EXPECT_THROW(group.send(buffer(values), 1)->wait(), CollectiveError);
    group.barrier()->wait();
  });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("barrier #3: the group is broken: all_reduce #1"),
                               HasSubstr("lost the connection to rank 1")));
}

TEST(GlooGroup, DestroyingAGroupWithWorkUnderWayDoesNotHang) {
  const auto store = std::make_shared<test::MemoryStore>();
  std::shared_ptr<Work> work;
  std::vector<float> values(100);
  auto other =
      std::async(std::launch::async, [&] { return make_gloo_group(test::gloo_options(1, 2, 60s), store); });
  {
    const auto group = make_gloo_group(test::gloo_options(0, 2, 60s), store);
    work = group->all_reduce(buffer(values), ReduceOp::sum);
  }
  EXPECT_THROW(work->wait(), CollectiveError);
  other.get();
}

TEST(GlooGroup, ManyGroupsOneAfterTheOther) {
  for (int i = 0; i < 10; ++i) {
    const auto errors = errors_of_ranks(2, [](ProcessGroup& group) {
      std::vector<float> values(10, 1);
      group.all_reduce(buffer(values), ReduceOp::sum)->wait();
      EXPECT_EQ(values[0], 2);
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

TEST(GlooGroup, RanksThatDoNotComeAreNamed) {
  const auto store = std::make_shared<test::MemoryStore>();
  auto options = test::gloo_options(1, 4, 1s);
  options.mesh.timeout = 300ms;
  try {
    (void)make_gloo_group(options, store);
    FAIL() << "nobody else came";
  } catch (const CollectiveError& error) {
    EXPECT_STREQ(error.what(), "forming the group: 3 of 4 ranks did not come within 0.3 s: 0, 2, 3");
  }
}

TEST(GlooGroup, ADamagedAddressIsAnError) {
  const auto store = std::make_shared<test::MemoryStore>();
  store->set("test/address/0", "1234567");
  try {
    (void)make_gloo_group(test::gloo_options(1, 3, 1s), store);
    FAIL() << "that is no address";
  } catch (const CollectiveError& error) {
    EXPECT_STREQ(error.what(), "forming the group: rank 0's address in the store is damaged");
  }
}

}  // namespace
}  // namespace muster::worker
