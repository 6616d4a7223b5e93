// What becomes of the output of all workers of a node, as the user wants it. Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/logs/fields.hpp"
#include "agent/logs/line_matcher.hpp"
#include "agent/logs/line_prefix.hpp"
#include "base/stream_map.hpp"
#include "base/time.hpp"

namespace muster::agent {

/// Where log files lie below the folder of the job.
inline constexpr const char* kLogFileTemplate = "round-{round}/rank-{rank}/{stream}.log";

/// The defaults: each stream goes to its file and to the console, as the worker wrote it.
struct OutputOptions {
  /// Fields are WorkerName's and `stream` (stdout, stderr); `${NAME}` is a variable. An absolute path leaves the
  /// folder of the job; without `stream` a worker has one file.
  std::string file = kLogFileTemplate;
  FieldText variable = [](std::string_view) { return std::optional<std::string>(); };
  std::optional<StreamMap> redirects;                ///< these are not shown on the console
  std::optional<StreamMap> tee;                      ///< these are, with torchrun's prefix
  std::optional<std::set<int>> console_local_ranks;  ///< others are not shown
  std::optional<std::set<int>> console_ranks;
  std::optional<std::string> line_prefix;   ///< a template for all lines on the console; empty: none
  bool terminals = false;                   ///< workers write to terminals instead of pipes
  std::optional<Duration> collapse;         ///< equal lines of several workers within this time become one
  std::optional<LineMatcher> match;         ///< lines of both streams that also go to matched.log
  std::vector<std::string> stdout_filters;  ///< lines that contain one of them also go to filtered_stdout.log
  std::vector<std::string> stderr_filters;
};

/// A template of log files that gives each worker a file of its own and knows all that it names.
Result<void> check_file_template(const std::string& text, const FieldText& variable);

/// One worker's file for "stdout" or "stderr", below `folder`.
std::filesystem::path log_file_of(const OutputOptions& options, const std::filesystem::path& folder,
                                  const WorkerName& worker, const std::string& stream);

/// Is a stream (Streams::out or Streams::err) of this worker shown on the console?
bool is_shown(const OutputOptions& options, Streams stream, int local_rank, int rank);

/// What to say of `--ranks-filter` when no rank of such a world passes it; empty: nothing.
std::string filter_without_ranks(const OutputOptions& options, int world_size);

/// The template of what stands before its lines there.
std::string prefix_template(const OutputOptions& options, Streams stream, int local_rank);

}  // namespace muster::agent
