// The same model, initial parameters and batches here and in PyTorch, for 100 steps with each optimizer: the
// losses agree within 1e-4 relative at each step, the parameters within 1e-3 at the end.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "tests/trainers/gloo_world.hpp"
#include "tests/trainers/tiny_mnist.hpp"
#include "trainers/optim/adam.hpp"
#include "trainers/optim/sgd.hpp"
#include "trainers/parallel/fsdp.hpp"
#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {
namespace {

constexpr std::int64_t kSteps = 100;
constexpr std::int64_t kBatches = 10;
constexpr std::int64_t kBatchSize = 64;
constexpr std::int64_t kPixels = 784;

struct Problem {
  std::vector<Tensor> images;
  std::vector<Bytes> labels;
};

Problem make_problem() {
  Problem problem;
  Random random(2024, 1);
  for (std::int64_t b = 0; b < kBatches; ++b) {
    problem.images.emplace_back(Shape{kBatchSize, kPixels});
    for (auto& value : problem.images.back().values()) value = random.uniform(0, 1);
    problem.labels.emplace_back();
    for (std::int64_t i = 0; i < kBatchSize; ++i) {
      problem.labels.back().push_back(static_cast<std::uint8_t>(random.below(10)));
    }
  }
  return problem;
}

void append(std::ofstream& file, const void* data, std::size_t bytes) {
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

void append(std::ofstream& file, const Tensor& tensor) {
  append(file, tensor.data(), tensor.values().size_bytes());
}

template <class T>
std::vector<T> read_all(const std::filesystem::path& path) {
  std::vector<T> values(std::filesystem::file_size(path) / sizeof(T));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

void write_problem(const std::filesystem::path& folder, const Problem& problem, Module& model) {
  std::ofstream params(folder / "params.bin", std::ios::binary);
  for (auto* parameter : model.parameters()) append(params, parameter->value);
  std::ofstream images(folder / "images.bin", std::ios::binary);
  for (const auto& batch : problem.images) append(images, batch);
  std::ofstream labels(folder / "labels.bin", std::ios::binary);
  for (const auto& batch : problem.labels) append(labels, batch.data(), batch.size());
}

Sequential make_model() { return multi_layer_perceptron({kPixels, 256, 10}, 1); }

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(std::vector<Parameter*>)>;

void compare(const std::filesystem::path& folder, const std::string& name, const MakeOptimizer& make,
             Problem& problem) {
  SCOPED_TRACE(name);
  const auto losses = read_all<double>(folder / (name + "-losses.bin"));
  const auto params = read_all<float>(folder / (name + "-params.bin"));
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(kSteps));
  auto model = make_model();
  const auto optimizer = make(model.parameters());
  Tensor gradient;
  for (std::size_t step = 0; step < losses.size(); ++step) {
    const auto batch = step % kBatches;
    const auto& logits = model.forward(problem.images[batch]);
    const double loss = softmax_cross_entropy(logits, problem.labels[batch], gradient);
    model.backward(gradient, InputGradient::unwanted);
    optimizer->step();
    ASSERT_NEAR(loss, losses[step], 1e-4 * losses[step]) << "step " << step;
  }
  EXPECT_LT(losses.back(), losses.front());
  std::size_t i = 0;
  for (auto* parameter : model.parameters()) {
    for (float value : parameter->value.values()) ASSERT_NEAR(value, params.at(i++), 1e-3) << parameter->name;
  }
}

void run_torch(const std::filesystem::path& folder, const std::string& arguments) {
  const std::string command = std::string("/usr/bin/python3 ") + MUSTER_SOURCE_DIR +
                              "/tests/trainers/torch_reference.py " + folder.string() + " " + arguments;
  ASSERT_EQ(std::system(command.c_str()), 0) << "needs Debian's python3-torch: " << command;
}

/// The rows of a batch that `rank` of `size` trains on.
Tensor part_of_batch(const Tensor& images, int rank, int size) {
  const auto rows = images.rows() / size;
  Tensor part({rows, images.columns()});
  std::copy_n(images.row(rank * rows), part.count(), part.data());
  return part;
}

/// fsdp_mlp on two ranks, each with half of each batch.
void train_sharded(ShardingStrategy strategy, const Problem& problem, const std::vector<std::int64_t>& widths,
                   std::vector<double>& losses, std::vector<float>& params) {
  GlooWorld world(1, 2);
  world.run([&](RankGroups& groups) {
    auto& group = *groups.world;
    auto model = multi_layer_perceptron(widths, 1);
    FullySharded sharded(model, {group, *groups.alone},
                         {.strategy = strategy, .precision = {}, .min_num_params = 5000});
    Adam optimizer(sharded.parameters(), AdamOptions{.weight_decay = 0.01, .kind = WeightDecay::decoupled});
    Tensor gradient;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const auto batch = static_cast<std::size_t>(step % kBatches);
      auto images = part_of_batch(problem.images[batch], group.rank(), group.size());
      const auto own = kBatchSize / group.size();
      const auto labels =
          std::span(problem.labels[batch])
              .subspan(static_cast<std::size_t>(own * group.rank()), static_cast<std::size_t>(own));
      double loss = softmax_cross_entropy(sharded.forward(images), labels, gradient);
      sharded.backward(gradient, InputGradient::unwanted);
      sharded.finish_gradients();
      optimizer.step();
      group.all_reduce({&loss, 1, worker::ElementType::f64}, worker::ReduceOp::average)->wait();
      if (group.rank() == 0) losses.push_back(loss);
    }
    sharded.with_whole_parameters([&] {
      if (group.rank() != 0) return;
      for (auto* parameter : model.parameters())
        params.insert(params.end(), parameter->value.data(),
                      parameter->value.data() + parameter->value.count());
    });
  });
}

TEST(TorchReference, AShardedPerceptronTrainsAsInPyTorchOverAHundredSteps) {
  const TemporaryFolder folder;
  const auto problem = make_problem();
  const std::vector<std::int64_t> widths = {kPixels, 64, 64, 64, 10};
  auto model = multi_layer_perceptron(widths, 1);
  write_problem(folder.path(), problem, model);
  run_torch(folder.path(), "784-64-64-64-10 adamw");
  const auto expected_losses = read_all<double>(folder.path() / "adamw-losses.bin");
  const auto expected_params = read_all<float>(folder.path() / "adamw-params.bin");
  for (auto strategy : {ShardingStrategy::full_shard, ShardingStrategy::shard_optimizer}) {
    std::vector<double> losses;
    std::vector<float> params;
    train_sharded(strategy, problem, widths, losses, params);
    ASSERT_EQ(losses.size(), expected_losses.size());
    for (std::size_t step = 0; step < losses.size(); ++step)
      ASSERT_NEAR(losses[step], expected_losses[step], 1e-4 * expected_losses[step]) << "step " << step;
    EXPECT_LT(losses.back(), losses.front());
    ASSERT_EQ(params.size(), expected_params.size());
    for (std::size_t i = 0; i < params.size(); ++i) ASSERT_NEAR(params[i], expected_params[i], 1e-3);
  }
}

TEST(TorchReference, LossesAndParametersAgreeOverAHundredSteps) {
  const TemporaryFolder folder;
  auto problem = make_problem();
  auto model = make_model();
  write_problem(folder.path(), problem, model);
  run_torch(folder.path(), "784-256-10 sgd adam adamw");

  compare(
      folder.path(), "sgd",
      [](auto parameters) {
        return std::make_unique<Sgd>(
            parameters, SgdOptions{.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 1e-3});
      },
      problem);
  compare(
      folder.path(), "adam", [](auto parameters) { return std::make_unique<Adam>(parameters); }, problem);
  compare(
      folder.path(), "adamw",
      [](auto parameters) {
        return std::make_unique<Adam>(parameters,
                                      AdamOptions{.weight_decay = 0.01, .kind = WeightDecay::decoupled});
      },
      problem);
}

}  // namespace
}  // namespace muster::trainers
