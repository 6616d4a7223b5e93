#include "trainers/training/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace muster::trainers {

using Json = nlohmann::ordered_json;

Report::Report(ReportOptions options) : options_(std::move(options)) {
  if (options_.speaks && !options_.metrics_file.empty()) metrics_ = MetricsFile(options_.metrics_file);
}

void Report::line(const std::string& text) const {
  if (!options_.speaks) return;
  fmt::print("{}: {}\n", options_.program, text);
  std::fflush(stdout);
}

void Report::record(Json json) {
  json["generation"] = run_.generation;
  json["round"] = run_.round;
  const bool had_failed = metrics_.error() != 0;
  metrics_.write(json);
  if (metrics_.error() != 0 && !had_failed)
    line(metrics_failure(metrics_.error()) + "; no more lines are written to it");
}

void Report::resumed(const worker::LoadedCheckpoint& from, const TrainingState& state) {
  for (const auto& why : from.skipped) line("checkpoint skipped: " + why);
  line(fmt::format("resumed from {}: step {}, {} epochs and {} samples done", from.path.string(), state.step,
                   state.epoch, state.position));
  saved_step_ = state.step;
  record(Json{{"event", "resumed"},
              {"step", state.step},
              {"epoch", state.epoch},
              {"position", state.position},
              {"from_generation", from.lineage.generation},
              {"from_round", from.lineage.round},
              {"path", from.path.string()},
              {"skipped", from.skipped}});
}

void Report::drained(const TrainingState& state, bool saved) {
  line(fmt::format("asked to save: {} at step {}; leaves for the next round",
                   saved ? "saved" : "there is nothing to save to (--checkpoint-dir)", state.step));
  record(Json{{"event", "drained"}, {"step", state.step}, {"saved", saved}});
}

void Report::step(const TrainingState& state, double loss) {
  if (!metrics_.enabled()) return;  // called in every step: not even the object is made
  record(Json{{"event", "step"}, {"step", state.step}, {"epoch", state.epoch}, {"loss", loss}});
}

void Report::stretch(const StretchReport& report, const TrainingState& state) {
  if (!options_.quiet) {
    line(fmt::format("epoch {} of {}{}: loss {:.4f}, test accuracy {:.4f}, {:.0f} samples/s", report.epoch,
                     report.epochs, report.complete ? "" : fmt::format(" (stopped at step {})", state.step),
                     report.loss, report.accuracy.fraction(), report.samples_per_s));
  }
  record(Json{{"event", "epoch"},
              {"step", state.step},
              {"epoch", report.epoch},
              {"complete", report.complete},
              {"loss", report.loss},
              {"test_correct", report.accuracy.correct},
              {"test_total", report.accuracy.total},
              {"test_accuracy", report.accuracy.fraction()},
              {"samples_per_s", std::round(report.samples_per_s)},
              {"learning_rate", report.learning_rate}});
}

void Report::checkpoint_saved(std::int64_t step) {
  if (checkpoint_failures_ > 0)
    line(
        fmt::format("checkpoint of step {} saved again, after {} that were not", step, checkpoint_failures_));
  checkpoint_failures_ = 0;
  saved_step_ = step;
}

void Report::checkpoint_failed(std::int64_t step, const std::string& why) {
  if (checkpoint_failures_++ == 0)
    line(fmt::format("checkpoint of step {} not saved: {}; {}; training goes on", step, why,
                     newest_text("there is none before it")));
  record(Json{{"event", "checkpoint_failed"}, {"step", step}, {"why", why}});
}

void Report::superseded(std::int64_t step, const std::string& why) {
  record(Json{{"event", "superseded"}, {"step", step}, {"why", why}});
}

void Report::last_state_not_saved(std::int64_t step) const {
  line(fmt::format(
      "the state at the end, of step {}, is not saved, {}, for the reason told above: make room and run the "
      "same command again (--require-checkpoints makes this a failure)",
      step, newest_text("there is no checkpoint")));
}

std::string Report::newest_text(const char* none) const {
  return saved_step_ < 0 ? std::string(none) : fmt::format("the newest whole one is of step {}", saved_step_);
}

void Report::without_checkpoints(const std::vector<std::string>& options) const {
  line(fmt::format("nothing is saved: {} {} no effect without --checkpoint-dir", fmt::join(options, ", "),
                   options.size() == 1 ? "has" : "have"));
}

std::string Report::metrics_failure(int error) const {
  return fmt::format("--metrics-file {}: cannot be written: {} ({})", options_.metrics_file.string(),
                     std::strerror(error), ::strerrorname_np(error));
}

void Report::exported(const std::filesystem::path& path) {
  if (!options_.quiet) line("parameters exported to " + path.string());
}

}  // namespace muster::trainers
