#include "trainers/data/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace muster::trainers {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kMostFaults = 10;
constexpr const char* kTails[] = {"pad", "drop", "uneven"};

std::string file_name(std::int64_t attempt, int rank) {
  return fmt::format("attempt-{:06}-rank-{:04}.jsonl", attempt, rank);
}

Tail tail_of(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kTails); ++i)
    if (name == kTails[i]) return static_cast<Tail>(i);
  throw std::invalid_argument("tail '" + name + "'");
}

AuditRun run_of(const Json& json) { return {json.at(0), json.at(1)}; }

AuditHeader header_of(const Json& json) {
  return {.attempt = json.at("attempt"),
          .rank = json.at("rank"),
          .world_size = json.at("world"),
          .resumed_at = json.at("resumed_at"),
          .run = run_of(json.at("run")),
          .from = run_of(json.at("from")),
          .samples = json.at("samples"),
          .tail = tail_of(json.at("tail"))};
}

AuditLine line_of(const Json& json) {
  return {.step = json.at("step"),
          .epoch = json.at("epoch"),
          .repeats = json.at("repeats"),
          .samples = json.at("samples").get<std::vector<std::uint32_t>>()};
}

AuditFile read_file(const fs::path& path) {
  AuditFile result;
  std::ifstream file(path);
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    if (file.eof()) break;  // without its end of line: cut off
    ++number;
    try {
      const auto json = Json::parse(text);
      if (number == 1) {
        result.header = header_of(json);
      } else {
        result.lines.push_back(line_of(json));
      }
    } catch (const std::exception& error) {
      throw std::invalid_argument(fmt::format("{}: line {}: {}", path.string(), number, error.what()));
    }
  }
  return result;
}

/// What counts of a step: the lines of the attempt that did it last.
struct Step {
  std::int64_t attempt = 0;
  std::vector<const AuditLine*> lines;
};

using Lineage = std::map<std::int64_t, Step>;

/// One life of the world: the files of its ranks.
using Attempt = std::vector<const AuditFile*>;

/// By the run, then by the number: nodes that share no disk may number theirs alike.
std::map<std::pair<AuditRun, std::int64_t>, Attempt> attempts_of(const std::vector<AuditFile>& files) {
  std::map<std::pair<AuditRun, std::int64_t>, Attempt> attempts;
  for (const auto& file : files)
    if (file.header.world_size > 0 && file.header.samples > 0)
      attempts[{file.header.run, file.header.attempt}].push_back(&file);
  return attempts;
}

/// From the newest attempt back to the one that began: of each, the steps up to the checkpoint that the next one was
/// resumed from.
Lineage lineage_of(const std::vector<AuditFile>& files) {
  const auto attempts = attempts_of(files);
  Lineage lineage;
  auto last_step = std::numeric_limits<std::int64_t>::max();
  for (auto newest = attempts.rbegin(); newest != attempts.rend();) {
    const auto& [key, attempt] = *newest;
    const auto& header = attempt.front()->header;
    for (const auto* file : attempt) {
      for (const auto& line : file->lines) {
        if (line.step <= header.resumed_at || line.step > last_step) continue;
        auto& step = lineage[line.step];
        step.attempt = key.second;
        step.lines.push_back(&line);
      }
    }
    if (header.resumed_at == 0) break;
    last_step = header.resumed_at;
    // The newest of that run that had come so far: without a launcher's rounds two may have the same name.
    newest = std::find_if(std::next(newest), attempts.rend(), [&](const auto& other) {
      return other.first.first == header.from && other.second.front()->header.resumed_at < last_step;
    });
  }
  return lineage;
}

class Epoch {
 public:
  explicit Epoch(std::int64_t samples) : used_(static_cast<std::size_t>(samples), 0) {}

  void add(std::int64_t number, const Step& step, const AuditLine& line, std::vector<std::string>& faults) {
    const auto own = line.samples.size() - static_cast<std::size_t>(line.repeats);
    repeats_ += line.repeats;
    for (std::size_t i = 0; i < own; ++i) {
      const auto sample = line.samples[i];
      if (sample >= used_.size()) {
        faults.push_back(
            fmt::format("epoch {}: sample {} is not one of {}", number + 1, sample, used_.size()));
      } else if (used_[sample]++ > 0) {
        faults.push_back(fmt::format("epoch {}: sample {} is used again in step {} (attempt {})", number + 1,
                                     sample, line.step, step.attempt));
      } else {
        ++different_;
      }
    }
  }

  std::int64_t different() const { return different_; }
  std::int64_t repeats() const { return repeats_; }
  std::int64_t samples() const { return static_cast<std::int64_t>(used_.size()); }
  std::int64_t first_unused() const { return std::find(used_.begin(), used_.end(), 0) - used_.begin(); }

 private:
  std::vector<std::uint8_t> used_;
  std::int64_t different_ = 0;
  std::int64_t repeats_ = 0;
};

/// Samples that an epoch may leave out: with a dropped tail less than one for each rank of the largest world.
std::int64_t allowed_to_miss(const std::vector<AuditFile>& files) {
  std::int64_t allowed = 0;
  for (const auto& file : files)
    if (file.header.tail == Tail::drop) allowed = std::max<std::int64_t>(allowed, file.header.world_size - 1);
  return allowed;
}

}  // namespace

std::int64_t newest_audited_attempt(const fs::path& folder) {
  std::int64_t newest = 0;
  std::error_code none;  // no folder: no attempt
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    std::int64_t attempt = 0;
    if (std::sscanf(entry.path().filename().c_str(), "attempt-%ld-rank-", &attempt) == 1)
      newest = std::max(newest, attempt);
  }
  return newest;
}

AuditLog::AuditLog(const fs::path& folder, const AuditHeader& header)
    : path_(folder / file_name(header.attempt, header.rank)) {
  std::error_code error;
  fs::create_directories(folder, error);
  errno = error.value();
  if (!error) file_.open(path_);
  if (!file_.is_open())
    throw std::invalid_argument(
        fmt::format("--audit-dir {}: {}: {}", folder.string(), path_.string(), std::strerror(errno)));
  write(Json{{"attempt", header.attempt},
             {"rank", header.rank},
             {"world", header.world_size},
             {"resumed_at", header.resumed_at},
             {"run", {header.run.generation, header.run.round}},
             {"from", {header.from.generation, header.from.round}},
             {"samples", header.samples},
             {"tail", kTails[static_cast<std::size_t>(header.tail)]}}
            .dump());
}

void AuditLog::write(const std::string& line) {
  errno = 0;
  file_ << line + "\n" << std::flush;
  if (!file_) throw std::runtime_error(path_.string() + ": cannot be written: " + std::strerror(errno));
}

void AuditLog::record(std::int64_t step, std::int64_t epoch, const StepBatch& batch) {
  write(
      Json{{"step", step}, {"epoch", epoch}, {"repeats", batch.repeats}, {"samples", batch.indices}}.dump());
}

std::vector<AuditFile> read_audit(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".jsonl") paths.push_back(entry.path());
  if (error) throw std::invalid_argument(folder.string() + ": " + error.message());
  if (paths.empty())
    throw std::invalid_argument(folder.string() + ": no audit files (attempt-*-rank-*.jsonl) here");
  std::sort(paths.begin(), paths.end());
  std::vector<AuditFile> files;
  for (const auto& path : paths) files.push_back(read_file(path));
  return files;
}

AuditVerdict check_audit(const std::vector<AuditFile>& files) {
  AuditVerdict verdict;
  const auto lineage = lineage_of(files);
  std::int64_t samples = 0;
  for (const auto& file : files) samples = std::max(samples, file.header.samples);
  std::map<std::int64_t, Epoch> epochs;
  std::int64_t last_step = 0;
  for (const auto& [number, step] : lineage) {
    if (number != last_step + 1)
      verdict.faults.push_back(fmt::format("no line tells of steps {} to {}", last_step + 1, number - 1));
    last_step = number;
    for (const auto* line : step.lines)
      epochs.try_emplace(line->epoch, samples).first->second.add(line->epoch, step, *line, verdict.faults);
  }
  const auto allowed = allowed_to_miss(files);
  for (const auto& [number, epoch] : epochs) {
    const bool is_last = number == epochs.rbegin()->first;
    const auto missing = epoch.samples() - epoch.different();
    verdict.epochs.push_back(
        fmt::format("epoch {}: {} of {} samples used, {} repeated to fill the last batch", number + 1,
                    epoch.different(), epoch.samples(), epoch.repeats()));
    if (missing <= allowed) {
      ++verdict.complete_epochs;
    } else if (!is_last) {
      verdict.faults.push_back(fmt::format("epoch {}: {} samples were not used, {} is the first", number + 1,
                                           missing, epoch.first_unused()));
    }
  }
  if (verdict.faults.size() > kMostFaults) {
    const auto more = verdict.faults.size() - kMostFaults;
    verdict.faults.resize(kMostFaults);
    verdict.faults.push_back(fmt::format("and {} more", more));
  }
  return verdict;
}

}  // namespace muster::trainers
