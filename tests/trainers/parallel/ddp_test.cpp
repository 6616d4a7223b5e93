#include "trainers/parallel/ddp.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/trainers/thread_group.hpp"

#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/random.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::int64_t> kWidths = {6, 5, 3};

Tensor rows_from(std::int64_t first, std::int64_t count) {
  Tensor input({count, kWidths.front()});
  for (std::int64_t r = 0; r < count; ++r) {
    Random random(77, static_cast<std::uint64_t>(first + r));
    for (std::int64_t c = 0; c < input.columns(); ++c) input.row(r)[c] = random.uniform(-1, 1);
  }
  return input;
}

std::vector<std::uint8_t> labels_from(std::int64_t first, std::int64_t count) {
  std::vector<std::uint8_t> labels;
  for (auto i = first; i < first + count; ++i) labels.push_back(static_cast<std::uint8_t>(i % 3));
  return labels;
}

void compute_gradients(Module& model, std::int64_t first, std::int64_t count) {
  auto input = rows_from(first, count);
  Tensor gradient;
  softmax_cross_entropy(model.forward(input), labels_from(first, count), gradient);
  model.backward(gradient, InputGradient::unwanted);
}

std::vector<float> all_gradients(Module& model) {
  std::vector<float> all;
  for (auto* parameter : model.parameters()) {
    const auto values = parameter->gradient.values();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(DataParallel, EveryRankStartsWithRankZerosValues) {
  ThreadWorld world(3);
  auto reference = multi_layer_perceptron(kWidths, 0);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, static_cast<std::uint64_t>(group.rank()));
    const DataParallel ddp(model.parameters(), group);
    const auto expected = reference.parameters();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_THAT(model.parameters()[i]->value.values(),
                  testing::ElementsAreArray(std::as_const(expected[i]->value).values()));
    }
  });
}

TEST(DataParallel, TheAverageIsTheGradientOfTheWholeBatch) {
  auto reference = multi_layer_perceptron(kWidths, 0);
  compute_gradients(reference, 0, 8);
  const auto expected = all_gradients(reference);
  ThreadWorld world(4);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, 0);
    DataParallel ddp(model.parameters(), group, {.first_bytes = 16, .other_bytes = 64});
    for (int pass = 0; pass < 2; ++pass) {  // the second pass must not add to the first
      compute_gradients(model, 2 * group.rank(), 2);
      ddp.finish_gradients();
    }
    EXPECT_THAT(all_gradients(model), testing::Pointwise(testing::FloatNear(1e-6F), expected));
  });
}

TEST(DataParallel, ABucketStartsAsSoonAsItIsFull) {
  ThreadWorld world(1);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, 0);
    auto parameters = model.parameters();  // 0.weight 30, 0.bias 5, 2.weight 15, 2.bias 3
    DataParallel ddp(parameters, group, {.first_bytes = 4 * 18, .other_bytes = 4 * 30});
    ASSERT_EQ(ddp.bucket_count(), 2U);
    group.calls.clear();
    parameters[3]->gradient_is_ready();
    EXPECT_THAT(group.calls, ElementsAre());
    parameters[2]->gradient_is_ready();
    EXPECT_THAT(group.calls, ElementsAre("all_reduce 18"));
    parameters[1]->gradient_is_ready();
    parameters[0]->gradient_is_ready();
    EXPECT_THAT(group.calls, ElementsAre("all_reduce 18", "all_reduce 36"));  // the flag, too
    ddp.finish_gradients();
  });
}

TEST(DataParallel, AFlagThatOneRankRaisesIsSeenByAllAfterTheSameStep) {
  ThreadWorld world(3);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, 0);
    DataParallel ddp(model.parameters(), group);
    for (int step = 0; step < 5; ++step) {
      ddp.raise_flag(group.rank() == 1 && step == 2);
      compute_gradients(model, group.rank() * 4, 4);
      ddp.finish_gradients();
      EXPECT_EQ(ddp.flag_was_raised(), step == 2);
    }
  });
}

TEST(DataParallel, BucketsStartInOrderWhateverOrderTheyFillIn) {
  ThreadWorld world(1);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, 0);
    auto parameters = model.parameters();
    DataParallel ddp(parameters, group, {.first_bytes = 4 * 18, .other_bytes = 4 * 30});
    group.calls.clear();
    parameters[0]->gradient_is_ready();
    parameters[1]->gradient_is_ready();
    EXPECT_THAT(group.calls, ElementsAre());
    parameters[2]->gradient_is_ready();
    parameters[3]->gradient_is_ready();
    EXPECT_THAT(group.calls, ElementsAre("all_reduce 18", "all_reduce 36"));  // the flag, too
    ddp.finish_gradients();
  });
}

TEST(DataParallel, AnUnusedParameterIsAClearError) {
  ThreadWorld world(1);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, 0);
    auto parameters = model.parameters();
    DataParallel ddp(parameters, group);
    parameters[3]->gradient_is_ready();
    parameters[0]->gradient_is_ready();
    try {
      ddp.finish_gradients();
      FAIL();
    } catch (const std::logic_error& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("no gradient for 2.weight, 0.bias in this step"));
    }
  });
}

TEST(DataParallel, ASecondBackwardBeforeFinishIsAClearError) {
  ThreadWorld world(1);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, 0);
    DataParallel ddp(model.parameters(), group);
    compute_gradients(model, 0, 2);
    EXPECT_THROW(compute_gradients(model, 0, 2), std::logic_error);
  });
}

TEST(DataParallel, PassesInNoSyncAddUpAndCommunicateOnce) {
  auto reference = multi_layer_perceptron(kWidths, 0);
  compute_gradients(reference, 0, 12);
  auto expected = all_gradients(reference);
  for (auto& value : expected) value *= 3;  // each pass has the mean of a third of the batch
  ThreadWorld world(2);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, 0);
    DataParallel ddp(model.parameters(), group, {.first_bytes = 16, .other_bytes = 64});
    for (int step = 0; step < 2; ++step) {  // the second step must not add to the first
      group.calls.clear();
      ddp.no_sync([&] { compute_gradients(model, 2 * group.rank(), 2); });
      ddp.no_sync([&] { compute_gradients(model, 4 + 2 * group.rank(), 2); });
      EXPECT_THAT(group.calls, ElementsAre());
      compute_gradients(model, 8 + 2 * group.rank(), 2);
      ddp.finish_gradients();
      EXPECT_EQ(group.calls.size(), ddp.bucket_count());
    }
    EXPECT_THAT(all_gradients(model), testing::Pointwise(testing::FloatNear(3e-6F), expected));
  });
}

TEST(DataParallel, AnUnusedParameterInNoSyncIsAClearError) {
  ThreadWorld world(1);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, 0);
    DataParallel ddp(model.parameters(), group);
    try {
      ddp.no_sync([&] { model.parameters()[3]->gradient_is_ready(); });
      FAIL();
    } catch (const std::logic_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("no gradient for 2.weight, 0.bias, 0.weight in this step"));
    }
  });
}

TEST(DataParallel, ClipsByTheNormOfTheWholeModel) {
  ThreadWorld world(2);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, 0);
    DataParallel ddp(model.parameters(), group);
    const auto norm_of = [&] {
      double squares = 0;
      for (float value : all_gradients(model)) squares += static_cast<double>(value) * value;
      return std::sqrt(squares);
    };
    compute_gradients(model, group.rank(), 2);
    ddp.finish_gradients();
    const double norm = norm_of();
    EXPECT_NEAR(ddp.clip_gradients(2 * norm), norm, 1e-9);
    EXPECT_NEAR(norm_of(), norm, 1e-9) << "shorter than allowed: left alone";
    EXPECT_NEAR(ddp.clip_gradients(norm / 4), norm, 1e-9);
    EXPECT_NEAR(norm_of(), norm / 4, 1e-5);
  });
}

TEST(DataParallel, UnhooksItself) {
  ThreadWorld world(1);
  world.run([&](ThreadGroup& group) {
    auto model = multi_layer_perceptron(kWidths, 0);
    { const DataParallel ddp(model.parameters(), group); }
    compute_gradients(model, 0, 2);  // calls nobody, and writes into memory that is still there
    for (auto* parameter : model.parameters()) EXPECT_FALSE(parameter->on_gradient_ready);
  });
}

}  // namespace
}  // namespace muster::trainers
