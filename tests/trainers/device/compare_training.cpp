#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/trainers/device/comparison.hpp"
#include "trainers/optim/adam.hpp"
#include "trainers/optim/sgd.hpp"
#include "trainers/parallel/clipping.hpp"
#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/on_device.hpp"
#include "trainers/tensor/random.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers::test {
namespace {

constexpr std::int64_t kSteps = 20;
constexpr std::int64_t kBatch = 33;
constexpr double kLossTolerance = 1e-4;       // relative, as towards PyTorch
constexpr double kParameterTolerance = 1e-3;  // of the greatest

const std::vector<std::int64_t> kWidths = {19, 31, 23, 10};

struct Run {
  std::vector<double> losses;
  std::vector<Tensor> gradients;  ///< of the last step, on the CPU
  std::vector<Tensor> parameters;
  std::vector<std::string> names;
};

std::unique_ptr<Optimizer> make_optimizer(const std::string& kind,
                                          const std::vector<Parameter*>& parameters) {
  if (kind == "SGD with momentum")
    return std::make_unique<Sgd>(parameters, SgdOptions{.learning_rate = 0.05, .momentum = 0.9});
  if (kind == "Adam") return std::make_unique<Adam>(parameters, AdamOptions{.learning_rate = 1e-3});
  return std::make_unique<Adam>(
      parameters, AdamOptions{.learning_rate = 1e-3, .weight_decay = 0.01, .kind = WeightDecay::decoupled});
}

/// As Fit trains: batches come from the host, the norm is clipped.
Run train(Device& device, const std::string& kind) {
  auto model = multi_layer_perceptron(kWidths, 3);
  const auto parameters = model.parameters();
  for (auto* parameter : parameters) parameter->move_to(device);
  const auto optimizer = make_optimizer(kind, parameters);
  Run run;
  Tensor moved;
  Tensor gradient;
  Random random(8, 0);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    Tensor batch({kBatch, kWidths.front()});
    for (auto& value : batch.values()) value = random.uniform(-1, 1);
    std::vector<std::uint8_t> labels(static_cast<std::size_t>(kBatch));
    for (auto& label : labels) label = static_cast<std::uint8_t>(random.below(10));
    auto& input = on_device(device, batch, moved);
    run.losses.push_back(softmax_cross_entropy(model.forward(input), labels, gradient));
    model.backward(gradient, InputGradient::wanted);
    shorten_gradients(parameters, std::sqrt(sum_of_squares(parameters)), 0.5);
    optimizer->step();
  }
  for (auto* parameter : parameters) {
    run.names.push_back(parameter->name);
    run.gradients.push_back(parameter->gradient.clone_on(cpu_device()));
    run.parameters.push_back(parameter->value.clone_on(cpu_device()));
  }
  return run;
}

void compare(const std::string& what, const Tensor& expected, const Tensor& actual,
             std::vector<Difference>& differences) {
  double greatest = 0;
  double worst = 0;
  for (std::size_t i = 0; i < expected.values().size(); ++i) {
    greatest = std::max(greatest, std::abs(static_cast<double>(expected.values()[i])));
    const auto distance = std::abs(static_cast<double>(expected.values()[i]) - actual.values()[i]);
    if (!(distance <= worst)) worst = distance;
  }
  if (!(worst <= kParameterTolerance * greatest))
    differences.push_back(
        {"training", fmt::format("{} differs by {}, its greatest is {}", what, worst, greatest)});
}

}  // namespace

std::vector<Difference> compare_training(Device& candidate) {
  std::vector<Difference> differences;
  for (const std::string kind : {"SGD with momentum", "Adam", "AdamW"}) {
    const auto expected = train(cpu_device(), kind);
    const auto actual = train(candidate, kind);
    for (std::size_t step = 0; step < expected.losses.size(); ++step) {
      const auto distance = std::abs(expected.losses[step] - actual.losses[step]);
      if (distance <= kLossTolerance * expected.losses[step]) continue;
      differences.push_back({"training", fmt::format("{}: loss {} of step {}, expected {}", kind,
                                                     actual.losses[step], step, expected.losses[step])});
      break;
    }
    for (std::size_t i = 0; i < expected.names.size(); ++i) {
      compare(fmt::format("{}: gradient of {}", kind, expected.names[i]), expected.gradients[i],
              actual.gradients[i], differences);
      compare(fmt::format("{}: {}", kind, expected.names[i]), expected.parameters[i], actual.parameters[i],
              differences);
    }
  }
  return differences;
}

}  // namespace muster::trainers::test
