#include "rendezvous/store/value.hpp"

#include <gtest/gtest.h>

#include <random>

#include "rendezvous/store/wire.hpp"

namespace muster::rendezvous {
namespace {

const std::string kLong(100'000, 'l');
const std::string kShort = "short";

std::shared_ptr<StoreByteCount> nothing() { return std::make_shared<StoreByteCount>(); }

std::string framed(std::string_view bytes) {
  std::string out;
  wire::put_bytes(out, bytes);
  return out;
}

TEST(StoreValue, LongOnesAreCountedAsLongAsAnybodyHoldsThem) {
  const auto count = nothing();
  StoreValue value(kLong, count);
  EXPECT_EQ(count->all, kLong.size());
  EXPECT_EQ(value.uncounted_bytes(), 0U);
  EXPECT_EQ(value.freed_bytes(), kLong.size());
  StoreOutput output;
  output.put(value);
  EXPECT_EQ(value.freed_bytes(), 0U);
  value.assign(kShort, count);
  EXPECT_EQ(value.bytes(), kShort);
  EXPECT_EQ(value.uncounted_bytes(), kShort.size());
  EXPECT_EQ(count->all, kLong.size());
  EXPECT_EQ(count->replaced, kLong.size());
  EXPECT_EQ(output.replaced_bytes(), kLong.size());
  EXPECT_EQ(output.text(), framed(kLong));
  output.clear();
  EXPECT_EQ(count->all, 0U);
  EXPECT_EQ(count->replaced, 0U);
}

TEST(StoreValue, AppendingLeavesWhatAnAnswerHoldsAsItWas) {
  const auto count = nothing();
  StoreValue value(kShort, count);
  value.append(kLong, count);
  EXPECT_EQ(value.bytes(), kShort + kLong);
  EXPECT_EQ(count->all, value.size());
  value.append("1", count);
  StoreOutput output;
  output.put(value);
  value.append("2", count);
  EXPECT_EQ(value.bytes(), kShort + kLong + "12");
  EXPECT_EQ(output.text(), framed(kShort + kLong + "1"));
  EXPECT_EQ(count->all, 2 * value.size() - 1);
  output.reset();
  EXPECT_EQ(count->all, value.size());
}

TEST(StoreOutput, CopiesWhatIsShortAndSharesWhatIsLong) {
  const auto count = nothing();
  const StoreValue medium(std::string(5'000, 'm'), count);
  StoreOutput output;
  for (int i = 0; i < 1'000; ++i) output.put(medium);
  EXPECT_EQ(output.unsent_bytes(), 1'000U * 5'008);
  EXPECT_LT(output.room_bytes(), 300'000U) << "copied while the answer is short only";
  EXPECT_EQ(medium.freed_bytes(), 0U);
}

// However it is cut and moved, the same bytes come out.
TEST(StoreOutput, KeepsItsBytesInOrderInAnyPieces) {
  std::mt19937 dice(11);
  const auto upto = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(dice);
  };
  const auto count = nothing();
  for (int round = 0; round < 200; ++round) {
    StoreOutput output;
    std::string expected, got;
    for (int step = 0; step < 40; ++step) {
      StoreOutput fresh;
      switch (upto(3)) {
        case 0: {
          const StoreValue value(std::string(upto(60'000), static_cast<char>('a' + step % 26)), count);
          fresh.put(value);
          fresh.move_to(output);
          expected += framed(value.bytes());
          break;
        }
        case 1:
          fresh.own().append(upto(100'000), 'o');
          expected += fresh.own();
          fresh.move_to(output);
          break;
        case 2:
          output.move_to(fresh);
          std::swap(output, fresh);
          break;
        default:
          break;
      }
      std::string_view pieces[3];
      const auto found = output.next(std::span(pieces, 1 + upto(2)), upto(50'000));
      std::size_t bytes = 0;
      for (std::size_t n = 0; n < found; ++n) {
        got += pieces[n];
        bytes += pieces[n].size();
      }
      output.sent(bytes);
    }
    EXPECT_EQ(output.unsent_bytes(), expected.size() - got.size());
    ASSERT_TRUE(got + output.text() == expected) << round;
  }
  EXPECT_EQ(count->all, 0U);
}

TEST(StoreOutput, MovesWhatHasBeenSentInPart) {
  const auto count = nothing();
  for (const std::size_t own : {10UL, 100'000UL}) {
    StoreOutput output, later;
    output.put(StoreValue(kLong, count));
    output.own().append(own, 'o');
    const auto all = output.text();
    output.sent(8 + 50);
    output.move_to(later);
    EXPECT_TRUE(output.empty());
    EXPECT_TRUE(later.text() == all.substr(58)) << own;
  }
}

}  // namespace
}  // namespace muster::rendezvous
