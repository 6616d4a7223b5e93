#include "trainers/parallel/fsdp.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "tests/trainers/gloo_world.hpp"
#include "trainers/optim/adam.hpp"
#include "trainers/parallel/ddp.hpp"
#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/random.hpp"

namespace muster::trainers {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using enum ShardingStrategy;
using worker::ElementType;

// Rows that divide by no number of ranks, fewer rows than ranks, units of one layer and of several.
const std::vector<std::int64_t> kWidths = {6, 11, 7, 5, 3};
constexpr std::int64_t kGlobalBatch = 8;
constexpr std::int64_t kMinNumParams = 70;
constexpr int kSteps = 6;

Tensor rows_from(std::int64_t first, std::int64_t count) {
  Tensor input({count, kWidths.front()});
  for (std::int64_t r = 0; r < count; ++r) {
    Random random(77, static_cast<std::uint64_t>(first + r));
    for (std::int64_t c = 0; c < input.columns(); ++c) input.row(r)[c] = random.uniform(-1, 1);
  }
  return input;
}

double run_pass(Module& model, std::int64_t first, std::int64_t count) {
  auto input = rows_from(first, count);
  std::vector<std::uint8_t> labels;
  for (auto i = first; i < first + count; ++i) labels.push_back(static_cast<std::uint8_t>(i % 3));
  Tensor gradient;
  const double loss = softmax_cross_entropy(model.forward(input), labels, gradient);
  model.backward(gradient, InputGradient::unwanted);
  return loss;
}

/// The losses of each step, mean over the ranks, and the parameters after the last.
struct Outcome {
  std::vector<double> losses;
  std::vector<std::vector<float>> parameters;
};

std::vector<std::vector<float>> values_of(Module& model) {
  std::vector<std::vector<float>> all;
  for (auto* parameter : model.parameters()) {
    const auto values = parameter->value.values();
    all.emplace_back(values.begin(), values.end());
  }
  return all;
}

struct Plan {
  int nodes = 1;
  int ranks_per_node = 1;
  ShardingOptions sharding = {.strategy = full_shard, .precision = {}, .min_num_params = kMinNumParams};
  double max_norm = 0;  ///< 0: no clipping
  int passes = 1;       ///< in each step
};

AdamOptions adamw() { return {.learning_rate = 1e-2, .weight_decay = 0.01, .kind = WeightDecay::decoupled}; }

/// One rank's training on its part of each batch; what a batch holds does not depend on the number of ranks.
std::vector<double> train(const Plan& plan, worker::ProcessGroup& world, Module& model,
                          Parallelism& parallelism, Optimizer& optimizer) {
  const auto own = kGlobalBatch / world.size();
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const auto first = step * kGlobalBatch + world.rank() * own;
    double loss = 0;
    for (int pass = 1; pass < plan.passes; ++pass) parallelism.no_sync([&] { run_pass(model, first, own); });
    loss = run_pass(model, first, own);
    parallelism.finish_gradients();
    if (plan.max_norm > 0) parallelism.clip_gradients(plan.max_norm);
    optimizer.step();
    world.all_reduce({&loss, 1, ElementType::f64}, worker::ReduceOp::average)->wait();
    losses.push_back(loss);
  }
  return losses;
}

ShardingGroups groups_for(ShardingStrategy strategy, RankGroups& groups) {
  if (strategy == hybrid_shard) return {*groups.node, *groups.across};
  if (strategy == no_shard) return {*groups.alone, *groups.world};
  return {*groups.world, *groups.alone};
}

Outcome train_sharded(const Plan& plan) {
  GlooWorld world(plan.nodes, plan.ranks_per_node);
  Outcome outcome;
  world.run([&](RankGroups& groups) {
    auto model =
        multi_layer_perceptron(kWidths, static_cast<std::uint64_t>(groups.world->rank()));  // rank 0's count
    FullySharded sharded(model, groups_for(plan.sharding.strategy, groups), plan.sharding);
    Adam optimizer(sharded.parameters(), adamw());
    const auto losses = train(plan, *groups.world, sharded, sharded, optimizer);
    sharded.with_whole_parameters([&] {
      if (groups.world->rank() == 0) outcome = {losses, values_of(model)};
    });
  });
  return outcome;
}

Outcome train_replicated(const Plan& plan) {
  GlooWorld world(plan.nodes, plan.ranks_per_node);
  Outcome outcome;
  world.run([&](RankGroups& groups) {
    auto model = multi_layer_perceptron(kWidths, 0);
    DataParallel ddp(model.parameters(), *groups.world);
    Adam optimizer(model.parameters(), adamw());
    const auto losses = train(plan, *groups.world, model, ddp, optimizer);
    if (groups.world->rank() == 0) outcome = {losses, values_of(model)};
  });
  return outcome;
}

void expect_same(const Outcome& actual, const Outcome& expected, double tolerance) {
  EXPECT_THAT(actual.losses, testing::Pointwise(testing::DoubleNear(tolerance), expected.losses));
  ASSERT_EQ(actual.parameters.size(), expected.parameters.size());
  for (std::size_t i = 0; i < expected.parameters.size(); ++i) {
    EXPECT_THAT(
        actual.parameters[i],
        testing::Pointwise(testing::FloatNear(static_cast<float>(tolerance) * 100), expected.parameters[i]));
  }
  EXPECT_LT(expected.losses.back(), expected.losses.front());
}

constexpr double kRounding = 2e-6;

std::vector<Plan> all_strategies(Plan plan) {
  std::vector<Plan> plans;
  for (auto strategy : {full_shard, shard_grad_op, hybrid_shard, shard_optimizer, no_shard}) {
    for (auto prefetch : {Prefetch::none, Prefetch::where_it_fits, Prefetch::always}) {
      plan.sharding.strategy = strategy;
      plan.sharding.prefetch = prefetch;
      plans.push_back(plan);
    }
  }
  return plans;
}

TEST(FullySharded, EveryStrategyTrainsAsDataParallelismDoes) {
  const auto expected = train_replicated({.nodes = 2, .ranks_per_node = 2});
  for (const auto& plan : all_strategies({.nodes = 2, .ranks_per_node = 2})) {
    SCOPED_TRACE(static_cast<int>(plan.sharding.strategy));
    expect_same(train_sharded(plan), expected, kRounding);
  }
}

TEST(FullySharded, WorldsOfOneTwoAndFourTrainAlikeAtTheSameGlobalBatch) {
  const auto expected = train_replicated({});
  for (int ranks : {1, 2, 4}) {
    for (const auto& plan : all_strategies({.ranks_per_node = ranks})) {
      SCOPED_TRACE(testing::Message()
                   << ranks << " ranks, strategy " << static_cast<int>(plan.sharding.strategy));
      expect_same(train_sharded(plan), expected, kRounding);
    }
  }
}

TEST(FullySharded, ClippingUsesTheNormOfTheWholeModel) {
  constexpr double kShort = 0.05;
  const auto expected = train_replicated({.max_norm = kShort});
  for (const auto& plan : all_strategies({.nodes = 2, .ranks_per_node = 2, .max_norm = kShort})) {
    SCOPED_TRACE(static_cast<int>(plan.sharding.strategy));
    expect_same(train_sharded(plan), expected, kRounding);
  }
}

TEST(FullySharded, PassesInNoSyncAddUp) {
  const auto expected = train_replicated({.ranks_per_node = 2, .passes = 3});
  for (const auto& plan : all_strategies({.nodes = 1, .ranks_per_node = 2, .passes = 3})) {
    SCOPED_TRACE(static_cast<int>(plan.sharding.strategy));
    expect_same(train_sharded(plan), expected, kRounding);
  }
}

TEST(FullySharded, MixedPrecisionIsChosenSeparatelyAndKeepsFloatMasters) {
  constexpr double kBFloat16 = 0.02;  // 8 bits of precision
  const auto expected = train_replicated({.ranks_per_node = 2});
  for (auto parameters : {ElementType::f32, ElementType::bf16}) {
    for (auto reduction : {ElementType::f32, ElementType::bf16}) {
      for (auto plan : all_strategies({.nodes = 2, .ranks_per_node = 2})) {
        plan.sharding.precision = {.parameters = parameters, .reduction = reduction};
        const auto outcome = train_sharded(plan);
        EXPECT_THAT(outcome.losses, testing::Pointwise(testing::DoubleNear(kBFloat16), expected.losses));
        const bool exact = parameters == ElementType::f32 && reduction == ElementType::f32;
        if (exact) continue;
        EXPECT_NE(outcome.losses.back(), expected.losses.back()) << "nothing was rounded";
        // AdamW moves each parameter by less than bfloat16 can show; the masters have it all the same.
        const float moved = outcome.parameters[0][0];
        EXPECT_NE(moved, std::bit_cast<float>(std::bit_cast<std::uint32_t>(moved) & 0xffff0000U));
      }
    }
  }
}

TEST(FullySharded, ShardsAreRowsOfTheWholeAndCoverIt) {
  GlooWorld world(2, 2);
  auto reference = multi_layer_perceptron(kWidths, 0);
  world.run([&](RankGroups& groups) {
    auto model = multi_layer_perceptron(kWidths, 0);
    FullySharded sharded(model, {*groups.node, *groups.across}, {.min_num_params = kMinNumParams});
    const auto shards = sharded.shards();
    const auto whole = reference.parameters();
    ASSERT_EQ(shards.size(), whole.size());
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const auto& shard = shards[i];
      EXPECT_EQ(shard.parameter->name, whole[i]->name);
      EXPECT_EQ(shard.full_shape, whole[i]->value.shape());
      EXPECT_EQ(shard.first_copy, groups.world->rank() < 2);
      EXPECT_EQ(shard.parameter->value.shape(), shape_of_rows(shard.full_shape, shard.rows));
      const auto columns = whole[i]->value.columns();
      const std::span<const float> expected{whole[i]->value.data() + shard.rows.first * columns,
                                            static_cast<std::size_t>(shard.rows.count * columns)};
      EXPECT_THAT(shard.parameter->value.values(), ElementsAreArray(expected));
      EXPECT_EQ(shard.rows.first, rows_of_part(shard.full_shape[0], 2, groups.node->rank()).first);
    }
  });
}

TEST(FullySharded, AFlagThatOneRankRaisesIsSeenByAllAfterTheSameStep) {
  for (const auto& plan : all_strategies({.nodes = 2, .ranks_per_node = 2})) {
    GlooWorld world(2, 2);
    world.run([&](RankGroups& groups) {
      auto model = multi_layer_perceptron(kWidths, 0);
      FullySharded sharded(model, groups_for(plan.sharding.strategy, groups), plan.sharding);
      for (int step = 0; step < 4; ++step) {
        sharded.raise_flag(groups.world->rank() == 1 && step == 2);
        run_pass(sharded, 0, 2);
        sharded.finish_gradients();
        EXPECT_EQ(sharded.flag_was_raised(), step == 2);
      }
    });
  }
}

TEST(FullySharded, AForwardWithoutABackwardChangesNothing) {
  const auto expected = train_sharded({.ranks_per_node = 2});
  GlooWorld world(1, 2);
  world.run([&](RankGroups& groups) {
    auto model = multi_layer_perceptron(kWidths, 0);
    FullySharded sharded(model, {*groups.world, *groups.alone}, {.min_num_params = kMinNumParams});
    Adam optimizer(sharded.parameters(), adamw());
    std::vector<double> losses;
    for (int step = 0; step < kSteps; ++step) {
      auto other = rows_from(500, 3);
      sharded.forward(other);
      const auto first = step * kGlobalBatch + groups.world->rank() * kGlobalBatch / 2;
      double loss = run_pass(sharded, first, kGlobalBatch / 2);
      sharded.finish_gradients();
      optimizer.step();
      groups.world->all_reduce({&loss, 1, ElementType::f64}, worker::ReduceOp::average)->wait();
      losses.push_back(loss);
    }
    EXPECT_EQ(losses, expected.losses);
  });
}

TEST(FullySharded, AnUnusedParameterIsAClearError) {
  GlooWorld world(1, 1);
  world.run([&](RankGroups& groups) {
    auto model = multi_layer_perceptron(kWidths, 0);
    FullySharded sharded(model, {*groups.world, *groups.alone}, {.min_num_params = kMinNumParams});
    auto input = rows_from(0, 2);
    sharded.forward(input);
    try {
      sharded.finish_gradients();
      FAIL();
    } catch (const std::logic_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("no gradient for 6.bias, 6.weight"));
    }
  });
}

/// Layers of one size, so that units are: 64 x 64 + 64 each.
const std::vector<std::int64_t> kEqualWidths(9, 64);
constexpr std::int64_t kEqualUnit = 64 * 64 + 64;

struct MemoryPlan {
  int nodes = 1;
  int ranks_per_node = 1;
  ShardingStrategy strategy = full_shard;
  Prefetch prefetch = Prefetch::none;
  MixedPrecision precision = {};
  std::vector<std::int64_t> widths = kEqualWidths;
  std::int64_t min_num_params = 4000;
};

/// What the ranks hold at most during steps, beside what they keep. Some batches are evaluated between them.
StateMemory memory_of(const MemoryPlan& plan) {
  GlooWorld world(plan.nodes, plan.ranks_per_node);
  StateMemory memory;
  world.run([&](RankGroups& groups) {
    auto model = multi_layer_perceptron(plan.widths, 0);
    FullySharded sharded(model, groups_for(plan.strategy, groups),
                         {.strategy = plan.strategy,
                          .precision = plan.precision,
                          .min_num_params = plan.min_num_params,
                          .prefetch = plan.prefetch});
    Adam optimizer(sharded.parameters());
    Tensor input({2, plan.widths.front()});
    Tensor gradient;
    for (int step = 0; step < 3; ++step) {
      softmax_cross_entropy(sharded.forward(input), std::vector<std::uint8_t>{0, 1}, gradient);
      sharded.backward(gradient, InputGradient::unwanted);
      sharded.finish_gradients();
      optimizer.step();
      for (int batch = 0; batch < 2; ++batch) sharded.forward(input);
    }
    if (groups.world->rank() == 0) memory = sharded.memory(optimizer);
  });
  return memory;
}

/// As strategy.hpp has it, for Adam; `parts` is how many ranks share one copy.
double bytes_a_parameter(ShardingStrategy strategy, int parts) {
  const double share = 16.0 / parts;
  if (strategy == shard_grad_op) return share + 4;
  if (strategy == shard_optimizer) return share + 8;
  return share;
}

void expect_within_the_bound(const MemoryPlan& plan, const StateMemory& memory) {
  const auto expected =
      bytes_a_parameter(plan.strategy,
                        plan.ranks_per_node * (plan.strategy == hybrid_shard ? 1 : plan.nodes)) *
      static_cast<double>(memory.parameters);
  EXPECT_LE(static_cast<double>(memory.most()), 1.15 * (expected + static_cast<double>(memory.largest_unit)));
  if (plan.strategy == shard_optimizer) return;  // nothing in it is whole for a moment only
  EXPECT_GE(memory.most_whole, memory.largest_unit / 4) << "a unit must have travelled";
}

void expect_every_strategy_within_the_bound(MemoryPlan plan, int ranks) {
  for (const auto strategy : {full_shard, shard_grad_op, hybrid_shard, shard_optimizer}) {
    for (const auto prefetch : {Prefetch::none, Prefetch::where_it_fits}) {
      for (const auto parameters : {ElementType::f32, ElementType::bf16}) {
        for (const auto reduction : {ElementType::f32, ElementType::bf16}) {
          plan.nodes = strategy == hybrid_shard ? 2 : 1;
          plan.ranks_per_node = ranks;
          plan.strategy = strategy;
          plan.prefetch = prefetch;
          plan.precision = {.parameters = parameters, .reduction = reduction};
          SCOPED_TRACE(testing::Message() << ranks << " ranks, strategy " << static_cast<int>(strategy)
                                          << (prefetch == Prefetch::none ? "" : ", prefetching")
                                          << (parameters == ElementType::bf16 ? ", bf16 parameters" : "")
                                          << (reduction == ElementType::bf16 ? ", bf16 reduction" : ""));
          expect_within_the_bound(plan, memory_of(plan));
        }
      }
    }
  }
}

TEST(FullySharded, EveryStrategyThatShardsTakesItsShareAndOneUnitAtEveryPrecision) {
  for (const int ranks : {2, 4}) expect_every_strategy_within_the_bound({}, ranks);
}

TEST(FullySharded, AUnitThatIsEverythingOrAlmostTakesNoMore) {
  const std::vector<std::int64_t> one_large{96, 128, 128, 10};
  const std::vector<std::int64_t> few{128, 128, 128, 128, 10};
  expect_every_strategy_within_the_bound({.widths = one_large, .min_num_params = 20'000}, 4);
  expect_every_strategy_within_the_bound({.widths = few, .min_num_params = 10'000}, 2);
  expect_every_strategy_within_the_bound({.widths = few, .min_num_params = 1'000'000}, 2);
}

TEST(FullySharded, EightRanksTakeTheirSharesAndOneUnit) {
  for (const auto prefetch : {Prefetch::none, Prefetch::where_it_fits}) {
    for (const auto type : {ElementType::f32, ElementType::bf16}) {
      const MemoryPlan plan{
          .ranks_per_node = 8, .prefetch = prefetch, .precision = {.parameters = type, .reduction = type}};
      expect_within_the_bound(plan, memory_of(plan));
    }
  }
}

TEST(FullySharded, PrefetchingTakesAThirdBlockWhereThatFitsOrAlways) {
  const auto blocks = [](int ranks, Prefetch prefetch) {
    const auto memory = memory_of({.ranks_per_node = ranks, .prefetch = prefetch});
    EXPECT_EQ(memory.parameters, 8 * kEqualUnit);
    EXPECT_EQ(memory.largest_unit, 8 * kEqualUnit);
    return std::lround(2 * static_cast<double>(memory.most_whole) / static_cast<double>(memory.largest_unit));
  };
  EXPECT_EQ(blocks(2, Prefetch::none), 2);
  EXPECT_EQ(blocks(2, Prefetch::where_it_fits), 3) << "a unit is a quarter of a rank's share";
  EXPECT_EQ(blocks(8, Prefetch::where_it_fits), 2) << "a unit is a rank's share";
  EXPECT_EQ(blocks(8, Prefetch::always), 3);
}

TEST(FullySharded, FullShardKeepsSixteenBytesAParameterOverTheRanks) {
  for (const int ranks : {2, 4}) {
    const auto memory = memory_of({.ranks_per_node = ranks});
    EXPECT_NEAR(static_cast<double>(memory.kept), 16.0 * static_cast<double>(memory.parameters) / ranks, 64);
    EXPECT_GT(memory.most_whole, memory.largest_unit / 2) << "a unit must have been whole";
  }
}

TEST(FullySharded, EachStrategyKeepsWhatItsNameSays) {
  const auto kept = [](ShardingStrategy strategy) {
    const auto memory = memory_of({.ranks_per_node = 4, .strategy = strategy});
    return static_cast<double>(memory.kept) / static_cast<double>(memory.parameters);
  };
  constexpr double kPacked = 4.0 / 32;  // what travels together is in memory twice
  EXPECT_NEAR(kept(full_shard), 16.0 / 4, 0.01);
  EXPECT_NEAR(kept(shard_grad_op), 4 + 16.0 / 4, kPacked);
  EXPECT_NEAR(kept(shard_optimizer), 8 + 16.0 / 4, 2 * kPacked);
  EXPECT_NEAR(kept(no_shard), 16, 0.01);
}

}  // namespace
}  // namespace muster::trainers
