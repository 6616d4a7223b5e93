// MUSTER_DEBUG=collectives: the four ways in which ranks come to wait for each other for ever, each of them told before.
#include "worker_sdk/src/checked_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <numeric>

#include "tests/worker_sdk/ranks.hpp"

namespace muster::worker {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Far more than any of these tests takes, if it does what it should.
constexpr auto collective_timeout = 300s;

/// What the ranks print.
class Lines {
 public:
  void add(const std::string& line) {
    {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    }
    changed_.notify_all();
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  /// Waits until there are so many.
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return lines_.size() >= count; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

std::unique_ptr<ProcessGroup> make_group(int rank, int size, const std::shared_ptr<test::MemoryStore>& store,
                                         std::chrono::milliseconds slow_after, Lines& lines) {
  auto options = test::gloo_options(rank, size, collective_timeout);
  auto group = make_gloo_group(options, store);
  options.mesh.prefix = "check";
  auto side = make_gloo_group(options, store);
  return make_checked_group(
      std::move(group), std::move(side), store,
      {.prefix = "check", .names = {}, .slow_after = slow_after, .say = [&](const std::string& line) {
         lines.add(line);
       }});
}

std::vector<std::string> errors_of_checked_ranks(int size, const std::function<void(ProcessGroup&)>& body,
                                                 Lines& lines, std::chrono::milliseconds slow_after = 60s) {
  const auto store = std::make_shared<test::MemoryStore>();
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto group = make_group(rank, size, store, slow_after, lines);
        body(*group);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

std::vector<std::string> errors_of_checked_ranks(int size, const std::function<void(ProcessGroup&)>& body) {
  Lines lines;
  return errors_of_checked_ranks(size, body, lines);
}

void all_reduce(ProcessGroup& group, std::size_t count = 10) {
  std::vector<float> values(count, 1);
  group.all_reduce(buffer_of(std::span(values)), ReduceOp::sum)->wait();
}

TEST(CheckedGroup, RanksThatAgreeGetWhatTheyAskedFor) {
  const auto errors = errors_of_checked_ranks(3, [](ProcessGroup& group) {
    const auto own = static_cast<std::size_t>(group.rank());
    std::vector<std::int32_t> sums{group.rank(), 1};
    std::vector<std::int32_t> all(6);
    std::vector<std::int32_t> part(2);
    std::vector<std::int32_t> uneven(own, group.rank());
    std::vector<std::int32_t> gathered(3);
    group.all_reduce(buffer_of(std::span(sums)), ReduceOp::sum)->wait();
    group.all_gather(buffer_of(std::span(sums)), buffer_of(std::span(all)))->wait();
    group.reduce_scatter(buffer_of(std::span(all)), buffer_of(std::span(part)), ReduceOp::max)->wait();
    {
      const std::vector<std::size_t> counts{0, 1, 2};  // may go before the operation is done
      auto work =
          group.all_gather_uneven(buffer_of(std::span(uneven)), buffer_of(std::span(gathered)), counts);
      work->wait();
    }
    group.broadcast(buffer_of(std::span(part)), 2)->wait();
    group.barrier()->wait();
    EXPECT_THAT(sums, ElementsAre(3, 3));
    EXPECT_THAT(part, ElementsAre(3, 3));
    EXPECT_THAT(gathered, ElementsAre(1, 2, 2));
    EXPECT_THROW((void)group.broadcast(buffer_of(std::span(part)), 3), std::invalid_argument);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(CheckedGroup, ARankThatTookAnotherBranchIsNamedWithBothCalls) {
  const auto start = steady_clock::now();
  const auto errors = errors_of_checked_ranks(3, [](ProcessGroup& group) {
    group.barrier()->wait();
    std::vector<float> values(10);
    if (group.rank() == 1)
      group.broadcast(buffer_of(std::span(values)), 0)->wait();
    else
      all_reduce(group);
  });
  EXPECT_THAT(errors,
              Each(HasSubstr("the ranks make different calls: ranks 0, 2 call all_reduce #2 (sum, 10 x F32); "
                             "rank 1 calls broadcast #2 (from rank 0, 10 x F32)")));
  EXPECT_LT(steady_clock::now() - start, collective_timeout / 2);
}

TEST(CheckedGroup, ShapesThatDifferAreNamed) {
  const auto errors = errors_of_checked_ranks(
      2, [](ProcessGroup& group) { all_reduce(group, group.rank() == 0 ? 1000 : 999); });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 0 calls all_reduce #1 (sum, 1000 x F32)"),
                                 HasSubstr("rank 1 calls all_reduce #1 (sum, 999 x F32)"))));
}

TEST(CheckedGroup, ACallSaysOfWhatItIs) {
  const auto errors = errors_of_checked_ranks(2, [](ProcessGroup& group) {
    std::vector<float> values(10);
    if (group.rank() == 0) return group.barrier()->wait();
    std::string what = "gradients of 0.weight";  // it need not live longer than the call
    const auto work = group.all_reduce(buffer_of(std::span(values)).named(what), ReduceOp::sum);
    what.assign(what.size(), '?');
    work->wait();
  });
  EXPECT_THAT(errors, Each(HasSubstr("rank 1 calls all_reduce #1 (sum, 10 x F32, gradients of 0.weight)")));
}

TEST(CheckedGroup, ACallThatOnlySomeRanksMakeMeetsTheNextCallOfTheOthers) {
  const auto errors = errors_of_checked_ranks(3, [](ProcessGroup& group) {
    if (group.rank() == 0) group.barrier()->wait();
    all_reduce(group);
  });
  EXPECT_THAT(errors,
              Each(HasSubstr("rank 0 calls barrier #1; ranks 1, 2 call all_reduce #1 (sum, 10 x F32)")));
}

TEST(CheckedGroup, ARankWithFewerStepsIsNamedWithItsLastCall) {
  const auto start = steady_clock::now();
  const auto errors = errors_of_checked_ranks(3, [](ProcessGroup& group) {
    for (int step = 0; step < (group.rank() == 2 ? 3 : 5); ++step) all_reduce(group);
  });
  EXPECT_EQ(errors[2], "");
  for (int rank : {0, 1})
    EXPECT_THAT(errors[static_cast<std::size_t>(rank)],
                AllOf(HasSubstr("all_reduce #4 (sum, 10 x F32): "),
                      HasSubstr("rank 2 has not called it, its last was all_reduce #3 (sum, 10 x F32)")));
  EXPECT_LT(steady_clock::now() - start, collective_timeout / 2);
}

TEST(CheckedGroup, ASlowRankIsNamedWhileTheOthersWaitAndAllGoOnWhenItComes) {
  Lines lines;
  const auto errors = errors_of_checked_ranks(
      3,
      [&](ProcessGroup& group) {
        all_reduce(group);
        const bool all_said_so = group.rank() != 1 || lines.wait_for(2);
        EXPECT_TRUE(all_said_so);
        all_reduce(group);
      },
      lines, 200ms);
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_THAT(lines.all(),
              testing::Contains(AllOf(HasSubstr("rank 0: all_reduce #2 (sum, 10 x F32) has waited "),
                                      HasSubstr("rank 1 has not called it, its last was all_reduce #1"))));
  EXPECT_THAT(lines.all(),
              testing::Contains(HasSubstr("rank 2: all_reduce #2 (sum, 10 x F32) goes on after ")));
}

TEST(CheckedGroup, UnevenCountsThatDifferAreSaid) {
  const auto errors = errors_of_checked_ranks(2, [](ProcessGroup& group) {
    const std::vector<std::size_t> counts =
        group.rank() == 0 ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{2, 1};
    std::vector<float> values(1);
    std::vector<float> all(3);
    group.all_gather_uneven(buffer_of(std::span(values)), buffer_of(std::span(all)), counts)->wait();
  });
  EXPECT_THAT(errors, Each(HasSubstr("rank 0 calls all_gather_uneven #1 (3 x F32, counts [1, 2]); "
                                     "rank 1 calls all_gather_uneven #1 (3 x F32, counts [2, 1])")));
}

TEST(CheckedGroup, WhoWaitsForARankThatHasClosedTheGroupSaysSomething) {
  Lines lines;
  std::promise<void> closed;
  const auto errors = errors_of_checked_ranks(
      2,
      [&](ProcessGroup& group) {
        if (group.rank() == 0) {
          group.abort();
          EXPECT_THROW(group.barrier()->wait(), CollectiveError);
          return closed.set_value();
        }
        closed.get_future().wait();
        group.barrier()->wait();
      },
      lines, 100ms);
  EXPECT_THAT(errors[1], HasSubstr("barrier #1: "));
  EXPECT_THAT(lines.all(), Each(HasSubstr("s: all ranks have called it, not all have answered")));
}

TEST(CheckedGroup, MemoryThatCannotBeUsedIsRefusedAtOnce) {
  const auto errors = errors_of_checked_ranks(2, [](ProcessGroup& group) {
    float value = 0;
    const Buffer of_no_type{&value, 1, static_cast<ElementType>(99)};
    EXPECT_THROW((void)group.all_reduce(of_no_type, ReduceOp::sum), std::invalid_argument);
    EXPECT_THROW((void)group.broadcast({.count = 1}, 0), std::invalid_argument);
    EXPECT_THROW((void)group.all_reduce({.data = &value, .count = 1, .place = Place::device}, ReduceOp::sum),
                 std::invalid_argument);
    all_reduce(group);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(CheckedGroup, AfterAMismatchEveryCallFailsWithTheCause) {
  const auto errors = errors_of_checked_ranks(2, [](ProcessGroup& group) {
    std::vector<float> values(group.rank() == 0 ? 1 : 2);
    auto first = group.all_reduce(buffer_of(std::span(values)), ReduceOp::sum);
    auto second = group.barrier();
    EXPECT_THROW(first->wait(), CollectiveError);
    second->wait();
  });
  EXPECT_THAT(errors,
              Each(AllOf(HasSubstr("barrier #2: the group is broken: the ranks make different calls"))));
}

}  // namespace
}  // namespace muster::worker
