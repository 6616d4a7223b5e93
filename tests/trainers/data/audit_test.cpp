#include "trainers/data/audit.hpp"

#include <gmock/gmock.h>

#include "tests/trainers/tiny_mnist.hpp"

namespace muster::trainers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

AuditFile file(AuditHeader header, std::vector<AuditLine> lines) {
  if (header.samples == 0) header.samples = 4;
  return {header, std::move(lines)};
}

TEST(Audit, EverySampleOnceIsGood) {
  const auto verdict =
      check_audit({file({.world_size = 2}, {{1, 0, 0, {0}}, {2, 0, 0, {2}}, {3, 1, 0, {3}}}),
                   file({.rank = 1, .world_size = 2}, {{1, 0, 0, {3}}, {2, 0, 0, {1}}, {3, 1, 0, {1}}})});
  EXPECT_THAT(verdict.faults, IsEmpty());
  EXPECT_EQ(verdict.complete_epochs, 1);
  EXPECT_THAT(verdict.epochs, ElementsAre("epoch 1: 4 of 4 samples used, 0 repeated to fill the last batch",
                                          "epoch 2: 2 of 4 samples used, 0 repeated to fill the last batch"));
}

TEST(Audit, WhatWasDoneBeyondTheCheckpointIsVoid) {
  const auto verdict = check_audit(
      {file({.attempt = 1}, {{1, 0, 0, {0}}, {2, 0, 0, {1}}, {3, 0, 0, {2}}}),
       file({.attempt = 2, .rank = 0, .world_size = 2, .resumed_at = 1}, {{2, 0, 0, {1}}, {3, 0, 1, {3, 0}}}),
       file({.attempt = 2, .rank = 1, .world_size = 2, .resumed_at = 1}, {{2, 0, 0, {2}}, {3, 0, 1, {1}}})});
  EXPECT_THAT(verdict.faults, IsEmpty());
  EXPECT_EQ(verdict.complete_epochs, 1);
  EXPECT_THAT(verdict.epochs, ElementsAre("epoch 1: 4 of 4 samples used, 2 repeated to fill the last batch"));
}

TEST(Audit, AnAttemptThatWasSupersededCountsUpToTheCheckpointThatANewerOneWentOnFrom) {
  const auto first =
      file({.attempt = 1, .run = {1, 1}},
           {{1, 0, 0, {0}}, {2, 0, 0, {1}}, {3, 0, 0, {2}}, {4, 0, 0, {3}}});  // went on, cut off
  const auto second =
      file({.attempt = 2, .resumed_at = 1, .run = {2, 2}, .from = {1, 1}}, {{2, 0, 0, {1}}, {3, 0, 0, {3}}});
  const auto after = [](std::int64_t step, AuditRun from, std::vector<AuditLine> lines) {
    return file({.attempt = 3, .resumed_at = step, .run = {3, 3}, .from = from}, std::move(lines));
  };
  EXPECT_THAT(check_audit({first, second, after(3, {2, 2}, {{4, 0, 0, {2}}})}).faults, IsEmpty());
  EXPECT_THAT(check_audit({first, second, after(3, {1, 1}, {{4, 0, 0, {3}}})}).faults, IsEmpty());
  EXPECT_THAT(check_audit({first, second, after(3, {1, 1}, {{4, 0, 0, {2}}})}).faults,
              testing::Contains("epoch 1: sample 2 is used again in step 4 (attempt 3)"));
}

TEST(Audit, ASampleThatIsUsedTwiceOrNeverIsNamed) {
  EXPECT_THAT(check_audit({file({}, {{1, 0, 0, {0, 1}}, {2, 0, 0, {1}}, {3, 1, 0, {0}}})}).faults,
              ElementsAre("epoch 1: sample 1 is used again in step 2 (attempt 1)",
                          "epoch 1: 2 samples were not used, 2 is the first"));
  EXPECT_THAT(check_audit({file({}, {{1, 0, 0, {0, 1, 2, 3, 4}}})}).faults,
              ElementsAre("epoch 1: sample 4 is not one of 4"));
}

TEST(Audit, AStepThatNobodyToldOfIsNamed) {
  EXPECT_THAT(check_audit({file({}, {{1, 0, 0, {0}}, {4, 0, 0, {1}}})}).faults,
              ElementsAre("no line tells of steps 2 to 3"));
}

TEST(Audit, ADroppedTailMayBeMissing) {
  const auto used = [](Tail tail) {
    return check_audit({file({.world_size = 2, .tail = tail}, {{1, 0, 0, {0}}, {2, 1, 0, {0}}}),
                        file({.rank = 1, .world_size = 2, .tail = tail}, {{1, 0, 0, {1, 2}}})});
  };
  EXPECT_THAT(used(Tail::drop).faults, IsEmpty());
  EXPECT_THAT(used(Tail::pad).faults, ElementsAre("epoch 1: 1 samples were not used, 3 is the first"));
}

TEST(Audit, IsReadBackAndALineThatWasCutOffIsPassedOver) {
  const TemporaryFolder folder;
  const auto place = folder / "audit";
  EXPECT_EQ(newest_audited_attempt(place), 0);
  {
    AuditLog log(
        place, {.attempt = 7, .rank = 1, .world_size = 2, .resumed_at = 3, .samples = 9, .tail = Tail::drop});
    StepBatch step;
    step.indices = {5, 6};
    step.repeats = 1;
    log.record(4, 2, step);
    log.record(5, 2, step);
  }
  EXPECT_EQ(newest_audited_attempt(place), 7);
  const auto path = place / "attempt-000007-rank-0001.jsonl";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 4);
  const auto files = read_audit(place);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].header.resumed_at, 3);
  EXPECT_EQ(files[0].header.tail, Tail::drop);
  ASSERT_EQ(files[0].lines.size(), 1U);
  EXPECT_EQ(files[0].lines[0].step, 4);
  EXPECT_EQ(files[0].lines[0].epoch, 2);
  EXPECT_EQ(files[0].lines[0].repeats, 1);
  EXPECT_THAT(files[0].lines[0].samples, ElementsAre(5, 6));
  EXPECT_THROW(read_audit(folder / "absent"), std::invalid_argument);
}

}  // namespace
}  // namespace muster::trainers
