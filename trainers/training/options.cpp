#include "trainers/training/options.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <string_view>

#include "muster/worker/printing.hpp"
#include "trainers/device/open_device.hpp"
#include "trainers/training/option_table.hpp"

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

void add_schedule_options(OptionTable& table, TrainerOptions& options) {
  auto& schedule = options.schedule;
  table.agreed("--lr", schedule.rate, "learning rate")->check(kLearningRate)->capture_default_str();
  table.agreed_choice("--lr-scaling", schedule.scaling, kScalings,
                      "how --lr grows with the global batch over that of --base-workers");
  table
      .agreed("--base-workers", options.base_workers,
              "workers that --lr is meant for, each with --batch-size")
      ->check(CLI::Range(1, kMaxWorkers))
      ->capture_default_str();
  table.agreed("--warmup-steps", schedule.warmup_steps, "steps in which the rate grows from near 0")
      ->check(CLI::Range(std::int64_t{0}, kMaxSteps))
      ->capture_default_str();
  table.agreed_choice("--lr-decay", schedule.decay, kDecays, "after the warm-up");
  table.agreed_choice("--keep", options.fit.keep, kKeeps,
                      "what stays when the number of workers changes (global-batch: each computes its part "
                      "in passes of at most --batch-size)");
}

void add_data_options(OptionTable& table, TrainerOptions& options) {
  auto& fit = options.fit;
  table.own("--data-dir", options.data_dir, "folder with MNIST's four IDX files, gzipped or not")
      ->capture_default_str();
  table.agreed_flag(
      "--drop-last", [&fit] { fit.tail = Tail::drop; },
      "leave out what does not divide by the workers; by default some samples are repeated");
  table
      .own("--prefetch", fit.prefetch,
           "steps whose batches are made ready in advance, by a thread of its own")
      ->check(CLI::Range(0, kMaxPrefetch))
      ->capture_default_str();
  table.agreed_flag(
      "--allow-nan", [&fit] { fit.not_finite = NotFinite::is_allowed; },
      "go on when the loss is not a finite number; by default the run stops and says where");
  table.agreed_presence("--audit-dir", fit.audit_folder,
                        "record there which samples each step uses, for muster_audit");
}

void add_training_options(OptionTable& table, TrainerOptions& options) {
  auto& fit = options.fit;
  table.agreed("--epochs", fit.epochs, "passes over the training set")
      ->check(CLI::Range(std::int64_t{1}, kMaxEpochs))
      ->capture_default_str();
  table.agreed("--batch-size", fit.batch_size, "samples a step of each worker")
      ->check(CLI::Range(std::int64_t{1}, kMaxBatchSize))
      ->capture_default_str();
  add_schedule_options(table, options);
  table.agreed("--seed", fit.seed, "of the initial parameters and the order of the samples")
      ->check(CLI::Range(std::uint64_t{0}, kMaxSeed))
      ->capture_default_str();
  table.agreed("--max-steps", fit.max_steps, "stop after so many steps, resumed ones included")
      ->check(CLI::Range(std::int64_t{1}, kMaxSteps));
  table.agreed("--clip-norm", fit.clip_norm, "shorten gradients of a greater norm to this one")
      ->check(CLI::Range(1e-12, 1e12));
}

void add_checkpoint_options(OptionTable& table, TrainerOptions& options) {
  auto& checkpoints = options.checkpoints;
  table.agreed_presence("--checkpoint-dir", checkpoints.folder,
                        "save checkpoints there, and go on from the newest whole one");
  table
      .agreed("--checkpoint-every", options.fit.checkpoint_every_steps,
              "steps from one checkpoint to the next")
      ->check(CLI::Range(std::int64_t{1}, kMaxSteps))
      ->capture_default_str();
  table.agreed("--keep-last", checkpoints.keep_last, "checkpoints that are kept")
      ->check(CLI::Range(1, kMaxKept))
      ->capture_default_str();
  table.agreed_flag(
      "--checkpoint-wait", [&checkpoints] { checkpoints.in_background = false; },
      "wait for each checkpoint to be on disk; by default a copy is written while training goes on");
  table.agreed_flag(
      "--require-checkpoints", [&options] { options.require_checkpoints = true; },
      "exit code 1 if the last state could not be saved; by default it is only said");
}

/// Rank 0 alone reads or writes these.
void add_file_options(OptionTable& table, TrainerOptions& options) {
  table.own("--init", options.init_file, "initial parameters, a safetensors file with PyTorch's names");
  table.own("--export", options.export_file, "write the final parameters there, as safetensors");
  table.own("--metrics-file", options.metrics_file,
            "append JSON lines: each step (loss of rank 0's samples), each epoch (of all)");
  table.own_flag("--quiet", options.quiet, "no line for each epoch");
}

std::string backend_of(const TrainerOptions& options) {
  return options.backend.value_or(options.device == "cuda" ? "nccl" : "gloo");
}

void add_device_options(OptionTable& table, TrainerOptions& options) {
  table
      .agreed("--device", options.device,
              "where to compute: cpu, or cuda (this node's GPU number LOCAL_RANK; needs a build with CUDA)")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  table
      .agreed_as("--backend", options.backend,
                 "what parameters and gradients travel by: gloo, or nccl (--device=cuda's default)",
                 [&options] { return backend_of(options); })
      ->check(CLI::IsMember({"gloo", "nccl"}));
}

void add_options(OptionTable& table, TrainerOptions& options) {
  add_training_options(table, options);
  add_data_options(table, options);
  add_checkpoint_options(table, options);
  add_file_options(table, options);
  add_device_options(table, options);
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
  OptionTable table(program.what);
  add_options(table, parsed.options);
  program.add_options(table);
  try {
    refuse_empty_values(argc, argv);
    table.parse(argc, argv);
    parsed.options.schedule.reference_batch = parsed.options.base_workers * parsed.options.fit.batch_size;
    parsed.options.fit.schedule = parsed.options.schedule;
    for (const char* name :
         {"--checkpoint-every", "--keep-last", "--checkpoint-wait", "--require-checkpoints"})
      if (parsed.options.checkpoints.folder.empty() && table.given(name))
        parsed.options.without_effect.emplace_back(name);
    if (parsed.options.backend == "nccl" && parsed.options.device != "cuda")
      throw CLI::ValidationError("--backend", "nccl is for GPUs: it needs --device=cuda");
    parsed.options.agreement = table.agreement();
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", table.help());
    parsed.exit_code =
        worker::flush_standard_output(std::filesystem::path(argv[0]).filename().string()) ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(fmt::format("{}: {}; --help lists the options",
                                            std::filesystem::path(argv[0]).filename().string(),
                                            error.what()));
  }
  return parsed;
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
