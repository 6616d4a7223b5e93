// Proof of which samples a run has used: a folder of files, one for each rank and attempt, and a checker.
//
//   file   = `attempt-<number>-rank-<rank>.jsonl`: header line, then a line for each step, written before the step begins
//   header = {"attempt": n, "rank": n, "world": n, "resumed_at": step, "run": run, "from": run, "samples": n,
//             "tail": "pad" | "drop" | "uneven"}
//   run    = [generation, round]: of this attempt, and of the one that saved the checkpoint (muster/worker/checkpoint.hpp)
//   line   = {"step": n, "epoch": n, "repeats": n, "samples": [index, ...]}
//
// An attempt is one life of the world. It goes on from the step of a checkpoint, so what the attempt that saved it did
// beyond that step is lost, and is done again: those lines are void, and so are all of attempts from whose checkpoints
// nobody went on. The last `repeats` samples of a line fill the epoch's tail, and count for nothing. A run has used its
// data well if in each of its epochs every sample stands in exactly one line that is not void.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "trainers/data/loader.hpp"

namespace muster::trainers {

/// Which one of those that saved into a folder of checkpoints; without such a folder both are 0.
struct AuditRun {
  std::int64_t generation = 0;
  std::int64_t round = 0;
  auto operator<=>(const AuditRun&) const = default;
};

struct AuditHeader {
  std::int64_t attempt = 1;
  int rank = 0;
  int world_size = 1;
  std::int64_t resumed_at = 0;
  AuditRun run = {};
  AuditRun from = {};
  std::int64_t samples = 0;  ///< in the data set
  Tail tail = Tail::pad;
};

/// The greatest number of an attempt in this folder; 0: none.
std::int64_t newest_audited_attempt(const std::filesystem::path& folder);

class AuditLog {
 public:
  /// Makes folder and file. Throws std::invalid_argument that names the path and the errno text.
  AuditLog(const std::filesystem::path& folder, const AuditHeader& header);
  /// Throws std::runtime_error if the line cannot be written.
  void record(std::int64_t step, std::int64_t epoch, const StepBatch& batch);

 private:
  void write(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
};

struct AuditLine {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t repeats = 0;
  std::vector<std::uint32_t> samples;
};

struct AuditFile {
  AuditHeader header;
  std::vector<AuditLine> lines;
};

/// All of a folder. A last line that is cut off, as a kill leaves it, is passed over. Throws std::invalid_argument.
std::vector<AuditFile> read_audit(const std::filesystem::path& folder);

struct AuditVerdict {
  std::vector<std::string> epochs;  ///< a sentence for each, in order
  std::vector<std::string> faults;  ///< empty: every sample of every complete epoch was used exactly once
  std::int64_t complete_epochs = 0;
};

/// Pure. Of an epoch that is under way it is only asked that no sample was used twice.
AuditVerdict check_audit(const std::vector<AuditFile>& files);

}  // namespace muster::trainers
