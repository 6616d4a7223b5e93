#include "worker_sdk/src/failure_report.hpp"

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

using namespace std::chrono_literals;

const std::string all_reduce = "all_reduce #42 (sum, 1000 x F32)";

Failure timeout_of_rank_0() {
  Failure failure;
  failure.rank = 0;
  failure.own = {.operation = all_reduce, .timed_out = true, .lost = {}};
  failure.timeout = 1500ms;
  failure.waited_for = 3;
  failure.asked = {1, 2, 3};
  return failure;
}

Failure loss_of_rank_0(std::vector<int> closed) {
  Failure failure;
  failure.rank = 0;
  failure.own = {.operation = all_reduce, .timed_out = false, .lost = closed};
  failure.waited_for = 3;
  failure.asked = closed;
  return failure;
}

TEST(FailureReport, ATimeoutNamesTheRanksThatDidNotArrive) {
  auto failure = timeout_of_rank_0();
  failure.last_words[1] = {.operation = all_reduce, .timed_out = false, .lost = {0}};
  EXPECT_EQ(sentence(failure), all_reduce + " timed out after 1.5 s: ranks 2, 3 have not arrived");
  failure.last_words[3] = failure.last_words[1];
  EXPECT_EQ(sentence(failure), all_reduce + " timed out after 1.5 s: rank 2 has not arrived");
}

TEST(FailureReport, ATimeoutNamesTheRankThatTookAnotherBranch) {
  auto failure = timeout_of_rank_0();
  for (int rank : {1, 2})
    failure.last_words[rank] = {.operation = all_reduce, .timed_out = false, .lost = {}};
  failure.last_words[3] = {.operation = "barrier #42", .timed_out = false, .lost = {0}};
  EXPECT_EQ(sentence(failure), all_reduce + " timed out after 1.5 s: rank 3 is in barrier #42");
}

TEST(FailureReport, ATimeoutWithEverybodyThereNamesTheConnection) {
  auto failure = timeout_of_rank_0();
  for (int rank : {1, 2, 3})
    failure.last_words[rank] = {.operation = all_reduce, .timed_out = false, .lost = {}};
  EXPECT_EQ(sentence(failure), all_reduce + " timed out after 1.5 s: no data from or to rank 3");
}

TEST(FailureReport, ADeadRankIsToldFromOneThatGaveUpBecauseOfIt) {
  auto failure = loss_of_rank_0({1, 2});
  failure.last_words[1] = {.operation = all_reduce, .timed_out = false, .lost = {2}};
  EXPECT_EQ(sentence(failure), all_reduce + ": lost the connection to rank 2");
}

TEST(FailureReport, ADeadRankIsKnownFromAnothersLastWords) {
  auto failure = loss_of_rank_0({1});
  failure.last_words[1] = {.operation = all_reduce, .timed_out = false, .lost = {2}};
  EXPECT_EQ(sentence(failure), all_reduce + ": lost the connection to rank 2");
}

TEST(FailureReport, AnotherCallInTheSamePlaceComesFirstAndNobodyNamesItself) {
  auto failure = loss_of_rank_0({1, 2});
  failure.last_words[1] = {.operation = "barrier #42", .timed_out = false, .lost = {0, 2}};
  EXPECT_EQ(sentence(failure), all_reduce + ": rank 1 is in barrier #42; lost the connection to rank 2");
  failure.last_words[1].operation = "all_reduce #41 (sum, 1 x F32)";  // behind, because rank 2 is dead
  EXPECT_EQ(sentence(failure),
            all_reduce + ": lost the connection to rank 2; rank 1 is in all_reduce #41 (sum, 1 x F32)");
}

TEST(FailureReport, AnothersTimeoutIsNamedAsTheCause) {
  auto failure = loss_of_rank_0({1});
  failure.last_words[1] = {.operation = all_reduce, .timed_out = true, .lost = {}};
  EXPECT_EQ(sentence(failure), all_reduce + ": rank 1 timed out in " + all_reduce);
}

TEST(FailureReport, LastWordsAreReadBackAndOtherTextIsRefused) {
  const auto words =
      decode_last_words(encode_last_words({.operation = "a \"b\"", .timed_out = true, .lost = {1, 2}}));
  ASSERT_TRUE(words);
  EXPECT_EQ(words->operation, "a \"b\"");
  EXPECT_TRUE(words->timed_out);
  EXPECT_EQ(words->lost, (std::vector<int>{1, 2}));
  for (const auto* text :
       {"", "{", "[]", "{\"operation\":1}", "{\"operation\":\"x\",\"timed_out\":1,\"lost\":\"\"}"})
    EXPECT_FALSE(decode_last_words(text)) << text;
}

}  // namespace
}  // namespace muster::worker
