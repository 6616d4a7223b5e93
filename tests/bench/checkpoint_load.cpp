// A worker that saves and loads a sharded state and tells how long that took; one of the programs of
// `scripts/bench checkpoint`. Started by muster; rank 0 prints one line of JSON.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <deque>

#include "base/unique_fd.hpp"
#include "muster/worker/sharded_checkpoint.hpp"
#include "muster/worker/worker.hpp"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Options {
  fs::path folder;
  std::int64_t hidden = 2048;
  int repeat = 3;
  int steps = 150;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Parameters and two moments of the MLP (784, hidden x 7, 10), split by rows.
class State {
 public:
  State(std::int64_t hidden, int rank, int size) {
    for (const char* kind : {"model", "exp_avg", "exp_avg_sq"}) {
      std::int64_t in = 784;
      for (int layer = 0; layer < 8; ++layer) {
        const std::int64_t out = layer == 7 ? 10 : hidden;
        add(fmt::format("{}.{}.weight", kind, layer), {out, in}, rank, size);
        add(fmt::format("{}.{}.bias", kind, layer), {out}, rank, size);
        in = out;
      }
    }
  }
  const std::vector<TensorSlice>& slices() const { return slices_; }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& slice : slices_) sum += slice.bytes();
    return sum;
  }

 private:
  void add(std::string name, std::vector<std::int64_t> shape, int rank, int size) {
    const auto each = (shape[0] + size - 1) / size;
    TensorSlice slice{.name = std::move(name), .shape = std::move(shape)};
    slice.first_row = std::min(slice.shape[0], each * rank);
    slice.rows = std::min(each, slice.shape[0] - slice.first_row);
    auto& memory = memory_.emplace_back(slice.bytes() / sizeof(float));
    std::uint32_t number = static_cast<std::uint32_t>(slices_.size() + 1);
    for (auto& value : memory) value = static_cast<float>(number = number * 1664525 + 1013904223) * 0x1p-32F;
    slice.data = memory.data();
    slices_.push_back(std::move(slice));
  }

  std::deque<std::vector<float>> memory_;
  std::vector<TensorSlice> slices_;
};

/// What a training step costs: some arithmetic in the cache, then an all-reduce.
class Step {
 public:
  explicit Step(ProcessGroup& group)
      : group_(group),
        a_(kSide * kSide, 0.5F),
        b_(kSide * kSide, 0.5F),
        c_(kSide * kSide),
        gradient_(1 << 16) {}

  double run() {
    const auto start = Clock::now();
    for (int pass = 0; pass < 48; ++pass) multiply();
    group_.all_reduce(buffer_of(std::span(gradient_)), ReduceOp::average)->wait();
    return seconds_since(start);
  }

 private:
  static constexpr std::size_t kSide = 96;
  void multiply() {
    for (std::size_t i = 0; i < kSide; ++i)
      for (std::size_t k = 0; k < kSide; ++k)
        for (std::size_t j = 0; j < kSide; ++j) c_[i * kSide + j] += a_[i * kSide + k] * b_[k * kSide + j];
  }

  ProcessGroup& group_;
  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> c_;
  std::vector<float> gradient_;
};

/// Takes the folder's files out of the page cache.
void forget_files(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const UniqueFd fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (fd) (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

void must(const SaveOutcome& outcome) {
  if (!outcome.error.empty()) throw std::runtime_error(outcome.error);
}

struct Figures {
  std::vector<double> save_s;
  std::vector<double> load_s;
  std::vector<double> cold_load_s;
  std::vector<double> calm_steps_s;
  std::vector<double> saving_steps_s;  ///< while a save is under way, the one that copies included
  std::vector<double> copy_s;          ///< how long start_save() held the caller
};

Figures measure(const Options& options, ProcessGroup& group, const State& state) {
  Figures figures;
  ShardedCheckpoint checkpoint(options.folder, {.keep_last = 1}, group, state.slices());
  std::int64_t number = 0;
  for (int i = 0; i < options.repeat; ++i) {
    group.barrier()->wait();
    auto start = Clock::now();
    must(checkpoint.save(++number, {}));
    figures.save_s.push_back(seconds_since(start));
    for (auto* times : {&figures.load_s, &figures.cold_load_s}) {
      if (times == &figures.cold_load_s) forget_files(options.folder);
      group.barrier()->wait();
      start = Clock::now();
      if (!checkpoint.load_newest()) throw std::runtime_error("what was saved is not there");
      times->push_back(seconds_since(start));
    }
  }
  Step step(group);
  for (int i = 0; i < 2 * options.steps; ++i) step.run();  // the first seconds after a load are twice as slow
  for (int i = 0; i < options.steps; ++i) figures.calm_steps_s.push_back(step.run());
  for (int i = 0; i < options.repeat; ++i) {
    const auto start = Clock::now();
    checkpoint.start_save(++number, {});
    figures.copy_s.push_back(seconds_since(start));
    double extra = figures.copy_s.back();
    while (checkpoint.saving()) {
      const auto before = Clock::now();
      const auto outcome = checkpoint.poll();
      if (outcome) must(*outcome);
      extra += seconds_since(before);
      figures.saving_steps_s.push_back(step.run() + extra);
      extra = 0;
    }
    for (int s = 0; s < options.steps; ++s) figures.calm_steps_s.push_back(step.run());
  }
  return figures;
}

int body(int argc, char** argv) {
  Options options;
  CLI::App app("saves and loads a sharded state");
  app.add_option("--folder", options.folder)->required();
  app.add_option("--hidden", options.hidden);
  app.add_option("--repeat", options.repeat);
  app.add_option("--steps", options.steps);
  CLI11_PARSE(app, argc, argv);

  auto worker = Worker::join();
  auto& group = worker.process_group();
  const State state(options.hidden, group.rank(), group.size());
  const auto figures = measure(options, group, state);
  std::int64_t bytes = static_cast<std::int64_t>(state.bytes());
  group.all_reduce(buffer_of(std::span(&bytes, 1)), ReduceOp::sum)->wait();
  if (!worker.is_rank_zero()) return 0;
  const auto list = [](const std::vector<double>& values) {
    return fmt::format("[{:.6f}]", fmt::join(values, ","));
  };
  fmt::print(
      "RESULT "
      "{{\"bytes\":{},\"save_s\":{},\"load_s\":{},\"cold_load_s\":{},\"copy_s\":{},\"calm_steps_s\":{},"
      "\"saving_steps_s\":{}}}\n",
      bytes, list(figures.save_s), list(figures.load_s), list(figures.cold_load_s), list(figures.copy_s),
      list(figures.calm_steps_s), list(figures.saving_steps_s));
  return 0;
}

}  // namespace
}  // namespace muster::worker

int main(int argc, char** argv) { return muster::worker::run_main(muster::worker::body, argc, argv); }
