#include "rendezvous/server/timeout_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

struct Thing {
  TimeoutQueue<Thing>::Place place;
  int expired = 0;
};

TEST(TimeoutQueue, ExpiresWhatWasNotTouchedAndNothingElse) {
  boost::asio::io_context io;
  std::vector<Thing> things(3);
  TimeoutQueue<Thing>* queue_at = nullptr;
  TimeoutQueue<Thing> queue(io, milliseconds(600), [&](Thing& thing) {
    ++thing.expired;
    queue_at->remove(thing.place);
  });
  queue_at = &queue;
  for (auto& thing : things) thing.place = queue.add(thing);
  EXPECT_EQ(queue.oldest(), &things[0]);
  io.run_for(milliseconds(40));  // on a busy machine a multiple of it
  queue.touch(things[0].place);
  EXPECT_EQ(queue.oldest(), &things[1]);
  queue.remove(things[2].place);
  while (things[1].expired == 0) io.run_one();
  EXPECT_EQ(things[0].expired, 0);
  EXPECT_EQ(things[2].expired, 0);
  while (things[0].expired == 0) io.run_one();
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(io.run(), 0u) << "an empty queue waits for nothing";
}

}  // namespace
}  // namespace muster::rendezvous
