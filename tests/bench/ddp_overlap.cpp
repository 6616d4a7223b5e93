// One rank that trains a perceptron data-parallel in three ways by turns: gradients in buckets that are reduced during the
// backward pass, all in one all-reduce at its end, and not reduced at all. A program of `scripts/bench train`; rank 0
// prints one line of JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <limits>
#include <optional>

#include "muster/worker/worker.hpp"
#include "trainers/optim/sgd.hpp"
#include "trainers/parallel/ddp.hpp"
#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kInputs = 784;
constexpr std::int64_t kClasses = 10;

struct Options {
  std::int64_t hidden = 2048;
  int hidden_layers = 7;
  std::int64_t batch = 64;
  int rounds = 5;
  int steps = 5;  ///< of each way in each round
};

/// Everything at once, when the last gradient is there.
constexpr BucketLimits one_bucket{.first_bytes = std::numeric_limits<std::int64_t>::max(),
                                  .other_bytes = std::numeric_limits<std::int64_t>::max()};

class Training {
 public:
  Training(const Options& options, worker::ProcessGroup& group)
      : options_(options),
        group_(group),
        model_(multi_layer_perceptron(widths(options), 1)),
        images_({options.batch, kInputs}),
        labels_(static_cast<std::size_t>(options.batch)),
        optimizer_(model_.parameters(), {.learning_rate = 0.001}) {
    for (std::size_t i = 0; i < images_.values().size(); ++i)
      images_.values()[i] = static_cast<float>(i * 37 % 256) / 255;
    for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] = static_cast<std::uint8_t>(i % kClasses);
  }

  /// Seconds of each step but the first. `limits`: of the buckets; none: gradients stay on this rank.
  std::vector<double> step_seconds(std::optional<BucketLimits> limits) {
    DataParallel ddp(model_.parameters(), group_, limits.value_or(BucketLimits{}));
    std::vector<double> seconds;
    for (int step = 0; step <= options_.steps; ++step) {
      group_.barrier()->wait();
      const auto start = Clock::now();
      if (limits) {
        pass();
        ddp.finish_gradients();
      } else {
        ddp.no_sync([&] { pass(); });
      }
      optimizer_.step();
      if (step > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    return seconds;
  }

 private:
  static std::vector<std::int64_t> widths(const Options& options) {
    std::vector<std::int64_t> widths(static_cast<std::size_t>(options.hidden_layers) + 2, options.hidden);
    widths.front() = kInputs;
    widths.back() = kClasses;
    return widths;
  }

  void pass() {
    const auto& logits = model_.forward(images_);
    softmax_cross_entropy(logits, labels_, logits_gradient_);
    model_.backward(logits_gradient_, InputGradient::unwanted);
  }

  const Options& options_;
  worker::ProcessGroup& group_;
  Sequential model_;
  Tensor images_;
  std::vector<std::uint8_t> labels_;
  Tensor logits_gradient_;
  Sgd optimizer_;
};

int body(int argc, char** argv) {
  Options options;
  CLI::App app("steps with gradients in buckets, and with one all-reduce at the end");
  app.add_option("--hidden", options.hidden);
  app.add_option("--hidden-layers", options.hidden_layers);
  app.add_option("--batch", options.batch);
  app.add_option("--rounds", options.rounds);
  app.add_option("--steps", options.steps);
  CLI11_PARSE(app, argc, argv);

  auto worker = worker::Worker::join();
  Training training(options, worker.process_group());
  std::vector<double> buckets;
  std::vector<double> at_the_end;
  std::vector<double> alone;
  const auto add = [](std::vector<double>& all, const std::vector<double>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (int round = 0; round < options.rounds; ++round) {
    add(buckets, training.step_seconds(BucketLimits{}));
    add(at_the_end, training.step_seconds(one_bucket));
    add(alone, training.step_seconds(std::nullopt));
  }
  if (worker.is_rank_zero()) {
    fmt::print(R"({{"buckets_s":[{:.6f}],"at_the_end_s":[{:.6f}],"alone_s":[{:.6f}]}})"
               "\n",
               fmt::join(buckets, ","), fmt::join(at_the_end, ","), fmt::join(alone, ","));
  }
  return worker.done();
}

}  // namespace
}  // namespace muster::trainers

int main(int argc, char** argv) { return muster::worker::run_main(muster::trainers::body, argc, argv); }
