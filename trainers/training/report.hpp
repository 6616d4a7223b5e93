// What a user sees of a run, and what its metrics file gets: one function for each thing that happens. Only
// rank 0 speaks; the others hold a Report that says nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/worker/checkpoint.hpp"
#include "trainers/training/evaluation.hpp"
#include "trainers/training/metrics.hpp"
#include "trainers/training/state.hpp"

namespace muster::trainers {

struct ReportOptions {
  std::string program;  ///< put before each line
  bool speaks = true;   ///< false on ranks other than 0
  bool quiet = false;   ///< no lines for what goes well, but for the resume
  std::filesystem::path metrics_file;
};

/// A stretch of training between two evaluations.
struct StretchReport {
  std::int64_t epoch = 0;   ///< counts from 1
  std::int64_t epochs = 0;  ///< asked for
  bool complete = true;     ///< false: stopped within the epoch
  double loss = 0;          ///< mean over the epoch's samples so far, all ranks
  double samples_per_s = 0;
  double learning_rate = 0;  ///< of the last step
  Accuracy accuracy = {};
};

class Report {
 public:
  explicit Report(ReportOptions options);

  /// Each line of the metrics file tells from here on which run wrote it: one that was superseded may still write.
  void begin(const worker::Lineage& run) { run_ = run; }
  void resumed(const worker::LoadedCheckpoint& from, const TrainingState& state);
  void step(const TrainingState& state, double loss);
  void stretch(const StretchReport& report, const TrainingState& state);
  void drained(const TrainingState& state, bool saved);
  void checkpoint_saved(std::int64_t step);
  /// Said for the first of several in a row, and for the first that succeeds again; training goes on.
  void checkpoint_failed(std::int64_t step, const std::string& why);
  /// The run ends with this reason.
  void superseded(std::int64_t step, const std::string& why);
  /// At the end; why was told when it happened.
  void last_state_not_saved(std::int64_t step) const;
  void without_checkpoints(const std::vector<std::string>& options) const;
  void exported(const std::filesystem::path& path);

  /// The errno of the line that the metrics file did not take; 0: it has all, or there is none. No more are written.
  int metrics_error() const { return metrics_.error(); }
  /// "--metrics-file FILE: cannot be written: No space left on device (ENOSPC)".
  std::string metrics_failure(int error) const;

 private:
  void line(const std::string& text) const;
  std::string newest_text(const char* none) const;
  void record(nlohmann::ordered_json json);

  ReportOptions options_;
  MetricsFile metrics_;
  worker::Lineage run_;
  std::int64_t saved_step_ = -1;  ///< of the newest whole checkpoint; -1: there is none
  int checkpoint_failures_ = 0;   ///< in a row
};

}  // namespace muster::trainers
