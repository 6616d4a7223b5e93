// What one world has saved, another one of any size and kind loads, bit for bit.
#include "trainers/training/checkpointer.hpp"

#include <gmock/gmock.h>

#include "tests/trainers/thread_group.hpp"
#include "tests/trainers/tiny_mnist.hpp"
#include "trainers/optim/adam.hpp"

namespace muster::trainers {
namespace {

const RunIdentity kIdentity{.model = "m", .samples = 5};
const std::vector<Shape> kShapes = {{5, 3}, {5}, {2, 5}, {1}};

/// Parameters and Adam's state, split by rows over the ranks, or whole on each.
class World {
 public:
  World(worker::ProcessGroup& group, bool split) : group_(group) {
    for (std::size_t i = 0; i < kShapes.size(); ++i) {
      const auto rows =
          split ? rows_of_part(kShapes[i][0], group.size(), group.rank()) : Rows{0, kShapes[i][0]};
      parameters_.push_back(
          std::make_unique<Parameter>("p" + std::to_string(i), shape_of_rows(kShapes[i], rows)));
      shards_.push_back({parameters_.back().get(), kShapes[i], rows, split || group.rank() == 0});
    }
    std::vector<Parameter*> pointers;
    for (auto& parameter : parameters_) pointers.push_back(parameter.get());
    optimizer_ = std::make_unique<Adam>(pointers);
    state_ = state_shards(shards_, *optimizer_);
  }

  Checkpointer checkpointer(const std::filesystem::path& folder, bool in_background = false) {
    return {
        {.folder = folder, .in_background = in_background}, kIdentity, state_, *optimizer_, group_, report_};
  }

  /// Each number tells its tensor and its place in the whole.
  void fill() {
    each([](float& value, float expected) { value = expected; });
  }
  bool is_filled() {
    bool filled = true;
    each([&](float& value, float expected) { filled = filled && value == expected; });
    return filled;
  }
  std::int64_t steps_taken() const { return optimizer_->steps_taken; }

 private:
  void each(const auto& visit) {
    float tensor = 1000;
    for (auto* part : {&state_.parameters, &state_.optimizer}) {
      for (auto& shard : *part) {
        auto values = shard.tensor->values();
        const auto begin = shard.rows.first * (count_of(shard.full_shape) / shard.full_shape[0]);
        for (std::size_t i = 0; i < values.size(); ++i)
          visit(values[i], tensor + static_cast<float>(begin) + static_cast<float>(i));
        tensor += 1000;
      }
    }
  }

  worker::ProcessGroup& group_;
  Report report_{{.program = "test", .speaks = false, .metrics_file = {}}};
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<ParameterShard> shards_;
  std::unique_ptr<Adam> optimizer_;
  StateShards state_;
};

struct Kind {
  int size;
  bool split;
};

TEST(Checkpointer, AnyWorldLoadsWhatAnyOtherSaved) {
  const std::vector<Kind> kinds = {{1, false}, {2, false}, {2, true}, {4, true}, {3, true}};
  for (const auto& saver : kinds) {
    const TemporaryFolder folder;
    ThreadWorld(saver.size).run([&](ThreadGroup& group) {
      World world(group, saver.split);
      world.fill();
      auto checkpointer = world.checkpointer(folder.path(), true);
      checkpointer.save({.step = 7, .epoch = 1, .position = 3, .loss_samples = 2, .loss_sum = 0.1});
      checkpointer.finish();
      EXPECT_EQ(checkpointer.saved_step(), 7);
    });
    for (const auto& loader : kinds) {
      SCOPED_TRACE(std::to_string(saver.size) + (saver.split ? " split to " : " whole to ") +
                   std::to_string(loader.size) + (loader.split ? " split" : " whole"));
      ThreadWorld(loader.size).run([&](ThreadGroup& group) {
        World world(group, loader.split);
        TrainingState state;
        world.checkpointer(folder.path()).resume(state);
        EXPECT_TRUE(world.is_filled());
        EXPECT_EQ(state.step, 7);
        EXPECT_EQ(state.loss_sum, 0.1);
        EXPECT_EQ(world.steps_taken(), 7);
      });
    }
  }
}

TEST(Checkpointer, OtherRanksOfReplicasNeedNotSeeTheFolder) {
  const TemporaryFolder folder;
  for (const bool saving : {true, false}) {
    ThreadWorld(2).run([&](ThreadGroup& group) {
      World world(group, false);
      if (saving) world.fill();
      auto checkpointer = world.checkpointer(group.rank() == 0 ? folder.path() : "/nonexistent/folder");
      TrainingState state;
      saving ? checkpointer.save({.step = 2}) : checkpointer.resume(state);
      EXPECT_EQ(checkpointer.saved_step(), 2);
      EXPECT_TRUE(world.is_filled());
    });
  }
}

}  // namespace
}  // namespace muster::trainers
