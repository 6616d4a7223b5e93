#include "trainers/training/evaluation.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/trainers/thread_group.hpp"
#include "tests/trainers/tiny_mnist.hpp"
#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {
namespace {

TEST(Evaluation, CountsEverySampleOnceInWorldsOfAnySize) {
  const TemporaryFolder folder;
  write_tiny_mnist(folder.path(), 1, 1203);  // divides by neither world nor batch
  const auto dataset = ImageDataset::load(folder.path(), Split::test);
  std::vector<std::int64_t> correct;
  for (int size : {1, 2, 4, 5}) {
    ThreadWorld world(size);
    std::vector<Accuracy> answers(static_cast<std::size_t>(size));
    world.run([&](ThreadGroup& group) {
      auto model = multi_layer_perceptron({784, 8, 10}, 1);
      answers[static_cast<std::size_t>(group.rank())] = evaluate(model, dataset, group);
    });
    for (const auto& answer : answers) {
      EXPECT_EQ(answer.total, 1203);
      EXPECT_EQ(answer.correct, answers[0].correct);
    }
    correct.push_back(answers[0].correct);
  }
  EXPECT_GT(correct[0], 0);
  // A tie may fall the other way by rounding.
  for (auto count : correct) EXPECT_LE(std::abs(count - correct[0]), 1);
}

}  // namespace
}  // namespace muster::trainers
