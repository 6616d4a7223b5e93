#include "trainers/training/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <string_view>

#include "muster/worker/printing.hpp"
#include "trainers/device/open_device.hpp"

namespace muster::trainers {
namespace {

constexpr std::int64_t kMaxEpochs = 1'000'000;
constexpr std::int64_t kMaxBatchSize = 1 << 20;
constexpr std::uint64_t kMaxSeed = std::uint64_t{1} << 62;
constexpr std::int64_t kMaxSteps = std::int64_t{1} << 40;
constexpr double kMinLearningRate = 1e-12;
constexpr double kMaxLearningRate = 1e3;
constexpr int kMaxKept = 1000;
constexpr int kMaxWorkers = 1 << 20;
constexpr int kMaxPrefetch = 64;

const std::map<std::string, RateScaling> kScalings = {
    {"none", RateScaling::none}, {"linear", RateScaling::linear}, {"sqrt", RateScaling::square_root}};
const std::map<std::string, RateDecay> kDecays = {{"constant", RateDecay::constant},
                                                  {"cosine", RateDecay::cosine}};
const std::map<std::string, Keep> kKeeps = {{"worker-batch", Keep::worker_batch},
                                            {"global-batch", Keep::global_batch}};

/// In CLI11's ranges the bounds are the only thing said; a NaN would slip through them.
const CLI::Validator kLearningRate(
    [](std::string& text) -> std::string {
      double value = 0;
      const bool number = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
      if (number && value >= kMinLearningRate && value <= kMaxLearningRate) return {};
      return fmt::format("Value {} not in range {} to {}", text, kMinLearningRate, kMaxLearningRate);
    },
    "RATE");

void add_schedule_options(CLI::App& app, TrainerOptions& options) {
  auto& schedule = options.schedule;
  app.add_option("--lr", schedule.rate, "learning rate")->check(kLearningRate)->capture_default_str();
  app.add_option(
         "--lr-scaling", schedule.scaling,
         "how --lr grows with the global batch over that of --base-workers: none (default), linear, sqrt")
      ->transform(CLI::CheckedTransformer(kScalings))
      ->option_text("NAME");
  app.add_option("--base-workers", options.base_workers,
                 "workers that --lr is meant for, each with --batch-size")
      ->check(CLI::Range(1, kMaxWorkers))
      ->capture_default_str();
  app.add_option("--warmup-steps", schedule.warmup_steps, "steps in which the rate grows from near 0")
      ->check(CLI::Range(std::int64_t{0}, kMaxSteps))
      ->capture_default_str();
  app.add_option("--lr-decay", schedule.decay, "after the warm-up: constant (default), cosine")
      ->transform(CLI::CheckedTransformer(kDecays))
      ->option_text("NAME");
  app.add_option(
         "--keep", options.fit.keep,
         "what stays when the number of workers changes: worker-batch (default), global-batch (then each "
         "computes its part in passes of at most --batch-size)")
      ->transform(CLI::CheckedTransformer(kKeeps))
      ->option_text("NAME");
}

void add_data_options(CLI::App& app, FitOptions& fit) {
  app.add_flag(
      "--drop-last", [&fit](std::int64_t) { fit.tail = Tail::drop; },
      "leave out what does not divide by the workers; by default some samples are repeated");
  app.add_option("--prefetch", fit.prefetch,
                 "steps whose batches are made ready in advance, by a thread of its own")
      ->check(CLI::Range(0, kMaxPrefetch))
      ->capture_default_str();
  app.add_flag(
      "--allow-nan", [&fit](std::int64_t) { fit.not_finite = NotFinite::is_allowed; },
      "go on when the loss is not a finite number; by default the run stops and says where");
}

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
  add_schedule_options(app, options);
  app.add_option("--seed", fit.seed, "of the initial parameters and the order of the samples")
      ->check(CLI::Range(std::uint64_t{0}, kMaxSeed))
      ->capture_default_str();
  app.add_option("--max-steps", fit.max_steps, "stop after so many steps, resumed ones included")
      ->check(CLI::Range(std::int64_t{1}, kMaxSteps));
  app.add_option("--init", options.init_file, "initial parameters, a safetensors file with PyTorch's names");
  app.add_option("--checkpoint-dir", options.checkpoints.folder,
                 "save checkpoints there, and go on from the newest whole one");
  app.add_option("--checkpoint-every", fit.checkpoint_every_steps, "steps from one checkpoint to the next")
      ->check(CLI::Range(std::int64_t{1}, kMaxSteps))
      ->capture_default_str();
  app.add_option("--keep-last", options.checkpoints.keep_last, "checkpoints that are kept")
      ->check(CLI::Range(1, kMaxKept))
      ->capture_default_str();
  app.add_flag("--checkpoint-wait{false}", options.checkpoints.in_background,
               "wait for each checkpoint to be on disk; by default a copy is written while training goes on");
  app.add_flag("--require-checkpoints", options.require_checkpoints,
               "exit code 1 if the last state could not be saved; by default it is only said");
  app.add_option("--export", options.export_file, "write the final parameters there, as safetensors");
  app.add_option("--metrics-file", options.metrics_file, "append JSON lines: each step, each epoch");
  app.add_option("--clip-norm", fit.clip_norm, "shorten gradients of a greater norm to this one")
      ->check(CLI::Range(1e-12, 1e12));
  app.add_option("--audit-dir", fit.audit_folder,
                 "record there which samples each step uses, for muster_audit");
  app.add_flag("--quiet", options.quiet, "no line for each epoch");
  app.add_option(
         "--device", options.device,
         "where to compute: cpu, or cuda (this node's GPU number LOCAL_RANK; needs a build with CUDA)")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--backend", options.backend,
                 "what parameters and gradients travel by: gloo, or nccl (--device=cuda's default)")
      ->check(CLI::IsMember({"gloo", "nccl"}));
}

std::string backend_of(const TrainerOptions& options) {
  return options.backend.value_or(options.device == "cuda" ? "nccl" : "gloo");
}

/// An unset variable of a shell makes `--export=` or `--export ""` of `--export=$FILE`; CLI11 would take the word after
/// it for the value, or no value for a right one.
void refuse_empty_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--") && word.ends_with('=') && word.find('=') == word.size() - 1)
      throw CLI::ValidationError(std::string(word.substr(0, word.size() - 1)), "its value is empty");
    if (word.empty()) throw CLI::ValidationError(i > 1 ? argv[i - 1] : "an argument", "its value is empty");
  }
}

}  // namespace

ParsedOptions parse_trainer_options(int argc, char** argv, const TrainerProgram& program) {
  ParsedOptions parsed{.options = program.defaults, .exit_code = {}};
  CLI::App app(program.what);
  add_options(app, parsed.options);
  add_data_options(app, parsed.options.fit);
  program.add_options(app);
  try {
    refuse_empty_values(argc, argv);
    app.parse(argc, argv);
    parsed.options.schedule.reference_batch = parsed.options.base_workers * parsed.options.fit.batch_size;
    parsed.options.fit.schedule = parsed.options.schedule;
    for (const char* name :
         {"--checkpoint-every", "--keep-last", "--checkpoint-wait", "--require-checkpoints"})
      if (parsed.options.checkpoints.folder.empty() && app.count(name) > 0)
        parsed.options.without_effect.emplace_back(name);
    if (parsed.options.backend == "nccl" && parsed.options.device != "cuda")
      throw CLI::ValidationError("--backend", "nccl is for GPUs: it needs --device=cuda");
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    parsed.exit_code =
        worker::flush_standard_output(std::filesystem::path(argv[0]).filename().string()) ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(fmt::format("{}: {}; --help lists the options",
                                            std::filesystem::path(argv[0]).filename().string(),
                                            error.what()));
  }
  return parsed;
}

Description describe(const TrainerOptions& options) {
  const auto& fit = options.fit;
  return {{"--epochs", std::to_string(fit.epochs)},
          {"--batch-size", std::to_string(fit.batch_size)},
          {"--seed", std::to_string(fit.seed)},
          {"--max-steps", std::to_string(fit.max_steps)},
          {"--clip-norm", fmt::format("{}", fit.clip_norm)},
          {"--lr", fmt::format("{}", options.schedule.rate)},
          {"--keep", fit.keep == Keep::global_batch ? "global-batch" : "worker-batch"},
          {"--checkpoint-every", std::to_string(fit.checkpoint_every_steps)},
          {"--checkpoint-dir", options.checkpoints.folder.empty() ? "none" : "one"},
          {"--audit-dir", fit.audit_folder.empty() ? "none" : "one"},
          {"--device", options.device},
          {"--backend", backend_of(options)}};
}

Device& device_for(const TrainerOptions& options) {
  return open_device(options.device, worker::Environment::read().local_rank);
}

worker::WorkerOptions worker_options(const TrainerOptions& options, Device& device) {
  worker::WorkerOptions worker;
  worker.accelerator = device.accelerator();
  if (backend_of(options) == "gloo") worker.device_backend = worker::DeviceBackend::host;
  return worker;
}

}  // namespace muster::trainers
