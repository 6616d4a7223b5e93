#include "rendezvous/core/sentences.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace muster::rendezvous {
namespace {

TEST(Sentences, NamesReadLikeAListAndHaveALimit) {
  EXPECT_EQ(names_of({"n1"}, 1), "n1");
  EXPECT_EQ(names_of({"n1", "n2"}, 2), "n1 and n2");
  EXPECT_EQ(names_of({"n1", "n2", "n3"}, 3), "n1, n2 and n3");
  EXPECT_EQ(names_of({"1", "2", "3", "4", "5", "6", "7", "8"}, 12), "1, 2, 3, 4, 5, 6, 7, 8 and 4 more");
  EXPECT_EQ(names_of({"n1", "n2"}, 1), "n1") << "more names than are counted";
}

TEST(Sentences, AFailureNamesRankNodeAndCause) {
  WorkerFailure failure;
  failure.node = "n3";
  failure.rank = 5;
  failure.cause = ExitCause::signalled(SIGKILL);
  EXPECT_EQ(what_failed(failure), "rank 5 on n3 was killed by SIGKILL");
  EXPECT_EQ(short_failure(failure), "rank 5 (SIGKILL)");
  failure.cause.evidence = "its cgroup counted 1 OOM kill";
  EXPECT_EQ(what_failed(failure), "rank 5 on n3 was killed by SIGKILL; its cgroup counted 1 OOM kill");
  failure.cause = ExitCause::exited(3);
  EXPECT_EQ(what_failed(failure), "rank 5 on n3 exited with code 3");
  EXPECT_EQ(short_failure(failure), "rank 5 (exit 3)");
  failure.cause = ExitCause::start_failed(2);
  EXPECT_EQ(what_failed(failure), "rank 5 on n3 could not be started: No such file or directory (ENOENT)");
  EXPECT_EQ(short_failure(failure), "rank 5 (did not start)");
}

}  // namespace
}  // namespace muster::rendezvous
