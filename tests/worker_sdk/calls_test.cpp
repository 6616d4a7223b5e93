#include "worker_sdk/src/calls.hpp"

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

std::vector<std::uint8_t> records_of(const std::vector<Operation>& operations) {
  std::vector<std::uint8_t> all;
  for (const auto& operation : operations) {
    const auto record = encode_call(operation);
    all.insert(all.end(), record.begin(), record.end());
  }
  return all;
}

const Operation reduce = collective("all_reduce", 5, "sum, 10 x F32");
const Operation wait = collective("barrier", 5, "");

TEST(Calls, TheSameCallsAgree) { EXPECT_FALSE(disagreement(records_of({reduce, reduce, reduce}), {})); }

TEST(Calls, DifferentCallsAreGroupedByRank) {
  EXPECT_EQ(disagreement(records_of({reduce, wait, reduce}), {}),
            "ranks 0, 2 call all_reduce #5 (sum, 10 x F32); rank 1 calls barrier #5");
}

TEST(Calls, RanksOfASubGroupAreNamedAsInTheWorld) {
  EXPECT_EQ(disagreement(records_of({reduce, wait}), {.group = "node 1", .world = {4, 7}}),
            "rank 4 calls all_reduce #5 (sum, 10 x F32); rank 7 calls barrier #5");
}

TEST(Calls, CountsThatTheTextDoesNotShowDisagreeToo) {
  const std::vector<std::size_t> one{1, 2};
  const std::vector<std::size_t> other{2, 1};
  const auto text = disagreement(records_of({collective("all_gather_uneven", 1, "3 x F32", one),
                                             collective("all_gather_uneven", 1, "3 x F32", other)}),
                                 {});
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("with counts of its own"), std::string::npos) << *text;
}

TEST(Calls, ALongTextIsCutOffAndStillToldApart) {
  const std::string details(1000, 'x');
  const auto text =
      disagreement(records_of({collective("a", 1, details + "1"), collective("a", 1, details + "2")}), {});
  EXPECT_TRUE(text);
}

TEST(Calls, LatestCallThereAndBack) {
  const auto latest = decode_latest(encode_latest({42, "all_reduce #42 (sum, 1 x F32)"}));
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->sequence, 42U);
  EXPECT_EQ(latest->text, "all_reduce #42 (sum, 1 x F32)");
  for (const char* bad : {"", "42", "x 1", "-1 x"}) EXPECT_FALSE(decode_latest(bad)) << bad;
}

TEST(Calls, WhoIsAbsentAndWhatTheyCalledLast) {
  EXPECT_EQ(absent_text({LatestCall{5, "all_reduce #5"}, LatestCall{4, "barrier #4"}, std::nullopt}, 5, {}),
            "rank 1 has not called it, its last was barrier #4; rank 2 has not called it, nor any other");
  EXPECT_EQ(absent_text({LatestCall{5, "a"}, LatestCall{6, "b"}}, 5, {}), "");
}

}  // namespace
}  // namespace muster::worker
