// The same model, initial parameters and batches here and in PyTorch, for 100 steps with each optimizer: the
// losses agree within 1e-4 relative at each step, the parameters within 1e-3 at the end.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "tests/trainers/tiny_mnist.hpp"
#include "trainers/optim/adam.hpp"
#include "trainers/optim/sgd.hpp"
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

TEST(TorchReference, LossesAndParametersAgreeOverAHundredSteps) {
  const TemporaryFolder folder;
  auto problem = make_problem();
  auto model = make_model();
  write_problem(folder.path(), problem, model);
  const std::string command = std::string("/usr/bin/python3 ") + MUSTER_SOURCE_DIR +
                              "/tests/trainers/torch_reference.py " + folder.path().string() +
                              " sgd adam adamw";
  ASSERT_EQ(std::system(command.c_str()), 0) << "needs Debian's python3-torch: " << command;

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
