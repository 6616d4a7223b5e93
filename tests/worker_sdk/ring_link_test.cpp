#include "worker_sdk/src/ring_link.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

namespace muster::worker {
namespace {

using namespace std::chrono_literals;

std::pair<UniqueFd, UniqueFd> connected() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    throw std::runtime_error("socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

std::vector<std::byte> bytes_from(int first, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(first) + i * 7);
  return bytes;
}

/// Ranks 0 and 1, each the other's neighbour on both sides.
struct TwoRanks {
  std::pair<UniqueFd, UniqueFd> to_one = connected();
  std::pair<UniqueFd, UniqueFd> to_zero = connected();
  RingLink zero{{1, std::move(to_zero.second)}, {1, std::move(to_one.first)}};
  RingLink one{{0, std::move(to_one.second)}, {0, std::move(to_zero.first)}};
};

/// Rank 0 alone; the test is its left neighbour by hand.
struct OneRank {
  std::pair<UniqueFd, UniqueFd> from_left = connected();
  std::pair<UniqueFd, UniqueFd> to_right = connected();
  RingLink link{{7, std::move(from_left.second)}, {8, std::move(to_right.first)}};

  void say(const void* data, std::size_t bytes) const {
    ASSERT_EQ(::write(from_left.first.get(), data, bytes), static_cast<ssize_t>(bytes));
  }
  MessageError error(std::uint64_t slot, std::size_t bytes, std::chrono::milliseconds time) {
    std::vector<std::byte> memory(bytes);
    try {
      link.exchange(slot, {}, {bytes, memory}, in(time));
    } catch (const MessageError& error) {
      return error;
    }
    throw std::runtime_error("an error was expected");
  }
};

TEST(RingLink, BothDirectionsAtOnceHoweverMuchItIs) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{5'000'001}}) {
    TwoRanks ranks;
    const auto of_zero = bytes_from(1, count);
    const auto of_one = bytes_from(2, count / 2);
    std::vector<std::byte> at_zero(of_one.size());
    std::vector<std::byte> at_one(of_zero.size());
    std::thread other([&] { ranks.one.exchange(5, of_one, {at_one.size(), at_one}, in(60s)); });
    ranks.zero.exchange(5, of_zero, {at_zero.size(), at_zero}, in(60s));
    other.join();
    EXPECT_EQ(at_zero, of_one) << count;
    EXPECT_EQ(at_one, of_zero) << count;
  }
}

TEST(RingLink, PiecesComeInOrderAndFillTheMemoryButForTheLast) {
  TwoRanks ranks;
  const auto sent = bytes_from(3, 1'000'003);
  std::vector<std::byte> memory(4096);
  std::vector<std::byte> got;
  std::thread other([&] { ranks.one.exchange(1, sent, {}, in(60s)); });
  ranks.zero.exchange(1, {},
                      {sent.size(), memory,
                       [&](std::size_t begin, std::span<const std::byte> piece) {
                         EXPECT_EQ(begin, got.size());
                         EXPECT_EQ(piece.size(), std::min(memory.size(), sent.size() - begin));
                         got.insert(got.end(), piece.begin(), piece.end());
                       }},
                      in(60s));
  other.join();
  EXPECT_EQ(got, sent);
}

TEST(RingLink, WhatComesMayBeWrittenOverWhatGoesOut) {
  TwoRanks ranks;
  const auto step = [](RingLink& link, std::vector<std::byte>& both) {
    std::vector<std::byte> memory(1000);
    const auto over = [&](std::size_t begin, std::span<const std::byte> piece) {
      std::memcpy(both.data() + begin, piece.data(), piece.size());
    };
    link.exchange(9, both, {both.size(), memory, over, true}, in(60s));
  };
  const auto of_zero = bytes_from(1, 3'000'000);
  const auto of_one = bytes_from(100, 3'000'000);
  auto zero = of_zero;
  auto one = of_one;
  std::thread other([&] { step(ranks.one, one); });
  step(ranks.zero, zero);
  other.join();
  EXPECT_TRUE(zero == of_one);
  EXPECT_TRUE(one == of_zero);
}

TEST(RingLink, AHeaderMayComeByteByByte) {
  OneRank rank;
  const std::array<std::uint64_t, 2> header{4, 3};
  std::thread left([&] {
    for (std::size_t i = 0; i < sizeof header; ++i)
      rank.say(reinterpret_cast<const char*>(header.data()) + i, 1);
    for (const char* letter : {"a", "b", "c"}) rank.say(letter, 1);
  });
  std::array<std::byte, 3> memory{};
  rank.link.exchange(4, {}, {3, memory}, in(60s));
  left.join();
  EXPECT_EQ(std::memcmp(memory.data(), "abc", 3), 0);
}

TEST(RingLink, WhatBelongsToAnotherOperationIsWaitedForInVain) {
  for (const auto& header : {std::array<std::uint64_t, 2>{5, 3}, std::array<std::uint64_t, 2>{4, 8}}) {
    OneRank rank;
    rank.say(header.data(), sizeof header);
    rank.say("abc", 3);
    const auto error = rank.error(4, 3, 100ms);
    EXPECT_TRUE(error.timed_out);
    EXPECT_EQ(error.peer, 7);
  }
}

TEST(RingLink, ANeighbourThatGoesIsAnErrorAtOnce) {
  for (const bool in_the_middle : {false, true}) {
    OneRank rank;
    const std::array<std::uint64_t, 2> header{4, 3};
    if (in_the_middle) {
      rank.say(header.data(), sizeof header);
      rank.say("a", 1);
    }
    rank.from_left.first.reset();
    const auto error = rank.error(4, 3, 60s);
    EXPECT_FALSE(error.timed_out);
    EXPECT_EQ(error.peer, 7);
    EXPECT_STREQ(error.what(), "the connection was closed");
  }
}

TEST(RingLink, ANeighbourThatGoesIsAnErrorAlsoBehindAnotherOperation) {
  OneRank rank;
  const std::array<std::uint64_t, 2> header{5, 3};
  rank.say(header.data(), sizeof header);
  std::thread left([&] { rank.from_left.first.reset(); });
  EXPECT_FALSE(rank.error(4, 3, 60s).timed_out);
  left.join();
}

TEST(RingLink, ANeighbourToSendToThatGoesIsNamed) {
  OneRank rank;
  rank.to_right.second.reset();
  const auto sent = bytes_from(1, 10);
  try {
    rank.link.exchange(4, sent, {}, in(60s));
    FAIL() << "nobody is there";
  } catch (const MessageError& error) {
    EXPECT_EQ(error.peer, 8);
    EXPECT_STREQ(error.what(), "Broken pipe (EPIPE)");
  }
}

TEST(RingLink, NobodyWhoTakesIsATimeoutOfTheRight) {
  OneRank rank;
  const auto sent = bytes_from(1, 50'000'000);
  try {
    rank.link.exchange(4, sent, {}, in(100ms));
    FAIL() << "nobody reads";
  } catch (const MessageError& error) {
    EXPECT_TRUE(error.timed_out);
    EXPECT_EQ(error.peer, 8);
  }
}

TEST(RingLink, ClosingWakesWhoWaits) {
  OneRank rank;
  std::thread closer([&] { rank.link.close(); });
  EXPECT_FALSE(rank.error(4, 3, 60s).timed_out);
  closer.join();
}

}  // namespace
}  // namespace muster::worker
