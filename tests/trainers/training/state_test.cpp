#include "trainers/training/state.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace muster::trainers {
namespace {

using testing::HasSubstr;

const RunIdentity kIdentity{.model = "m", .samples = 60000, .seed = 7, .world_size = 2, .batch_size = 64};

std::string failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no failure";
}

TEST(State, ComesBackBitForBit) {
  const TrainingState state{.step = 812,
                            .epoch = 1,
                            .position = 43904,
                            .loss_samples = 43904,
                            .loss_sum = 0.1 + 0.2,
                            .global_batch = 256};
  const auto back = state_from(facts_of(state, kIdentity));
  EXPECT_EQ(back.step, 812);
  EXPECT_EQ(back.epoch, 1);
  EXPECT_EQ(back.position, 43904);
  EXPECT_EQ(back.loss_samples, 43904);
  EXPECT_EQ(back.loss_sum, 0.1 + 0.2);
  EXPECT_EQ(back.global_batch, 256);
}

TEST(State, AnOldCheckpointTellsItsGlobalBatchByItsWorld) {
  auto facts = facts_of({}, kIdentity);
  facts.erase("global_batch");
  EXPECT_EQ(state_from(facts).global_batch, 2 * 64);
}

TEST(State, NamesWhatIsMissingOrMalformed) {
  auto facts = facts_of({}, kIdentity);
  facts["epoch"] = "-1";
  EXPECT_THAT(failure([&] { state_from(facts); }), HasSubstr("'epoch' is '-1', expected a whole number"));
  facts["epoch"] = "0";
  facts["loss_sum"] = "x";
  EXPECT_THAT(failure([&] { state_from(facts); }), HasSubstr("'loss_sum' is 'x', expected a number"));
  facts.erase("step");
  EXPECT_THAT(failure([&] { state_from(facts); }), HasSubstr("'step' is missing"));
}

TEST(State, WorldAndBatchMayChangeSeedAndDataMayNot) {
  const auto facts = facts_of({}, kIdentity);
  auto here = kIdentity;
  here.world_size = 5;
  here.batch_size = 8;
  EXPECT_EQ(why_of_another_run(facts, here), "");
  here.seed = 8;
  EXPECT_THAT(why_of_another_run(facts, here), HasSubstr("with seed '7', this run has '8'"));
  here = kIdentity;
  here.samples = 10;
  EXPECT_THAT(why_of_another_run(facts, here), HasSubstr("samples"));
}

}  // namespace
}  // namespace muster::trainers
