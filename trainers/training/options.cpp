#include "trainers/training/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>

namespace muster::trainers {
namespace {

constexpr std::int64_t kMaxEpochs = 1'000'000;
constexpr std::int64_t kMaxBatchSize = 1 << 20;
constexpr std::uint64_t kMaxSeed = std::uint64_t{1} << 62;
constexpr std::int64_t kMaxSteps = std::int64_t{1} << 40;
constexpr double kMinLearningRate = 1e-12;
constexpr double kMaxLearningRate = 1e3;
constexpr int kMaxKept = 1000;

/// In CLI11's ranges the bounds are the only thing said; a NaN would slip through them.
const CLI::Validator kLearningRate(
    [](std::string& text) -> std::string {
      double value = 0;
      const bool number = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
      if (number && value >= kMinLearningRate && value <= kMaxLearningRate) return {};
      return fmt::format("Value {} not in range {} to {}", text, kMinLearningRate, kMaxLearningRate);
    },
    "RATE");

void add_options(CLI::App& app, TrainerOptions& options) {
  auto& fit = options.fit;
  app.add_option("--data-dir", options.data_dir, "folder with MNIST's four IDX files, gzipped or not")
      ->capture_default_str();
  app.add_option("--epochs", fit.epochs, "passes over the training set")
      ->check(CLI::Range(std::int64_t{1}, kMaxEpochs))
      ->capture_default_str();
  app.add_option("--batch-size", fit.batch_size, "samples a step of each worker")
      ->check(CLI::Range(std::int64_t{1}, kMaxBatchSize))
      ->capture_default_str();
  app.add_option("--lr", options.learning_rate, "learning rate")->check(kLearningRate)->capture_default_str();
  app.add_option("--seed", fit.seed, "of the initial parameters and the order of the samples")
      ->check(CLI::Range(std::uint64_t{0}, kMaxSeed))
      ->capture_default_str();
  app.add_option("--max-steps", fit.max_steps, "stop after so many steps, resumed ones included")
      ->check(CLI::Range(std::int64_t{1}, kMaxSteps));
  app.add_option("--init", options.init_file, "initial parameters, a safetensors file with PyTorch's names");
  app.add_option("--checkpoint-dir", options.checkpoint_dir,
                 "save checkpoints there, and go on from the newest whole one");
  app.add_option("--checkpoint-every", fit.checkpoint_every_steps, "steps from one checkpoint to the next")
      ->check(CLI::Range(std::int64_t{1}, kMaxSteps))
      ->capture_default_str();
  app.add_option("--keep-last", options.keep_last, "checkpoints that are kept")
      ->check(CLI::Range(1, kMaxKept))
      ->capture_default_str();
  app.add_option("--export", options.export_file, "write the final parameters there, as safetensors");
  app.add_option("--metrics-file", options.metrics_file, "append JSON lines: each step, each epoch");
  app.add_flag("--quiet", options.quiet, "no line for each epoch");
}

}  // namespace

ParsedOptions parse_trainer_options(int argc, char** argv, const std::string& what) {
  ParsedOptions parsed;
  CLI::App app(what);
  add_options(app, parsed.options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    parsed.exit_code = 0;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(fmt::format("{}: {}; --help lists the options",
                                            std::filesystem::path(argv[0]).filename().string(),
                                            error.what()));
  }
  return parsed;
}

}  // namespace muster::trainers
