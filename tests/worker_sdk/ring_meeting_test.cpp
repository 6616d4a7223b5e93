#include "worker_sdk/src/ring_meeting.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <future>
#include <sstream>
#include <vector>

#include "muster/worker/process_group.hpp"
#include "tests/worker_sdk/memory_store.hpp"

namespace muster::worker {
namespace {

using namespace std::chrono_literals;

Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

MeshOptions ring_of(int rank, int size, const std::string& address = "127.0.0.1") {
  MeshOptions options;
  options.rank = rank;
  options.size = size;
  options.prefix = "test";
  options.address = address;
  return options;
}

std::string error_of(const MeshOptions& options, KeyValueStore& store, std::chrono::milliseconds time) {
  try {
    (void)meet_neighbours(options, store, in(time));
  } catch (const CollectiveError& error) {
    return error.what();
  }
  return "no error";
}

/// "ADDRESS PORT SECRET", as the rank has left it in the store.
UniqueFd knock(const std::string& record) {
  std::istringstream words(record);
  std::string address;
  int port = 0;
  words >> address >> port;
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, address.c_str(), &where.sin_addr);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
  return fd;
}

void exchange_once(RingLink& link, int rank, int size) {
  const std::byte own{static_cast<unsigned char>(rank)};
  std::byte got{};
  link.exchange(1, std::span(&own, 1), {1, std::span(&got, 1)}, in(60s));
  EXPECT_EQ(static_cast<int>(got), (rank + size - 1) % size);
}

TEST(RingMeeting, EachRankHearsItsLeftNeighbour) {
  for (const int size : {2, 5}) {
    test::MemoryStore store;
    std::vector<std::future<void>> ranks;
    for (int rank = 0; rank < size; ++rank)
      ranks.push_back(std::async(std::launch::async, [&store, rank, size] {
        auto link = meet_neighbours(ring_of(rank, size), store, in(60s));
        exchange_once(link, rank, size);
      }));
    for (auto& rank : ranks) rank.get();
  }
}

TEST(RingMeeting, StrangersAtTheDoorAreNotListenedTo) {
  test::MemoryStore store;
  auto zero = std::async(std::launch::async, [&] {
    auto link = meet_neighbours(ring_of(0, 2), store, in(60s));
    exchange_once(link, 0, 2);
  });
  const auto record = store.get("test/ring/0", 60s).value();
  std::vector<UniqueFd> strangers;
  for (const char* words : {"", "GET / HTTP/1.1\r\n\r\n", "00000000000000000000000000000000"}) {
    for (int i = 0; i < 10; ++i) {
      strangers.push_back(knock(record));
      ASSERT_EQ(::send(strangers.back().get(), words, std::strlen(words), MSG_NOSIGNAL),
                static_cast<ssize_t>(std::strlen(words)));
    }
    strangers.erase(strangers.end() - 5, strangers.end());  // half of them leave again
  }
  auto link = meet_neighbours(ring_of(1, 2), store, in(60s));
  exchange_once(link, 1, 2);
  zero.get();
}

TEST(RingMeeting, WhoIsMissingIsNamed) {
  test::MemoryStore store;
  auto two = std::async(std::launch::async, [&] { return error_of(ring_of(2, 3), store, 2s); });
  ASSERT_TRUE(store.get("test/ring/2", 60s));
  EXPECT_EQ(error_of(ring_of(1, 3), store, 200ms), "rank 0 did not connect in time");
  EXPECT_EQ(two.get(), "rank 0: it did not come");
}

TEST(RingMeeting, ANeighbourThatHasGoneAgainIsNamed) {
  test::MemoryStore store;
  EXPECT_EQ(error_of(ring_of(1, 2), store, 50ms), "rank 0: it did not come");
  EXPECT_THAT(error_of(ring_of(0, 2), store, 60s), testing::StartsWith("rank 1: connecting to 127.0.0.1:"));
}

TEST(RingMeeting, ADamagedAddressIsAnError) {
  for (const char* damaged : {"", "127.0.0.1", "127.0.0.1 80 short"}) {
    test::MemoryStore store;
    store.set("test/ring/1", damaged);
    EXPECT_EQ(error_of(ring_of(0, 2), store, 1s), "rank 1: its ring address in the store is damaged");
  }
}

TEST(RingMeeting, AnAddressThatIsNotThisHostsIsNamed) {
  test::MemoryStore store;
  EXPECT_EQ(error_of(ring_of(0, 2, "192.0.2.1"), store, 1s),
            "listening on 192.0.2.1: Cannot assign requested address (EADDRNOTAVAIL)");
}

TEST(RingMeeting, AnInterfaceHasAnAddress) {
  EXPECT_EQ(address_of_interface("lo"), "127.0.0.1");
  EXPECT_THROW(address_of_interface("nothing0"), CollectiveError);
}

}  // namespace
}  // namespace muster::worker
