#include "agent/logs/output_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file_name.hpp"
#include "base/ranks.hpp"

namespace muster::agent {

namespace {

bool names(const std::optional<StreamMap>& map, Streams stream, int local_rank) {
  if (!map) return false;
  const Streams named = map->of(local_rank);
  return stream == Streams::out ? has_out(named) : has_err(named);
}

bool lets_pass(const std::optional<std::set<int>>& filter, int rank) {
  return !filter || filter->contains(rank);
}

}  // namespace

Result<void> check_file_template(const std::string& text, const FieldText& variable) {
  std::set<std::string> used;
  std::string unknown;
  const WorkerName somebody;
  fill_fields(
      text,
      [&](std::string_view name) {
        used.emplace(name);
        if (name != "stream" && !somebody.text_of(name)) unknown = "{" + std::string(name) + "}";
        return std::optional<std::string>("");
      },
      [&](std::string_view name) {
        if (!variable(name)) unknown = "${" + std::string(name) + "}";
        return std::optional<std::string>("");
      });
  const std::string takes =
      "fields are {job} {node} {host} {role} {rank} {local_rank} {round} {attempt} {stream}, and ${NAME} for "
      "a "
      "variable that is set";
  if (text.empty()) return Error{"", "it is empty", takes};
  if (!unknown.empty()) return Error{"", "'" + unknown + "' is not known", takes};
  if (!used.contains("rank") && !used.contains("local_rank"))
    return Error{"", "'" + text + "' is the same file for all workers", "put {rank} or {local_rank} into it"};
  return {};
}

std::filesystem::path log_file_of(const OutputOptions& options, const std::filesystem::path& folder,
                                  const WorkerName& worker, const std::string& stream) {
  if (folder.empty()) return {};
  const FieldText field = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "stream") return stream;
    auto value = worker.text_of(name);
    return value ? std::optional(file_name_of(std::move(*value))) : value;
  };
  return folder / fill_fields(options.file, field, options.variable);
}

bool is_shown(const OutputOptions& options, Streams stream, int local_rank, int rank) {
  const bool to_file_alone =
      names(options.redirects, stream, local_rank) && !names(options.tee, stream, local_rank);
  return !to_file_alone && lets_pass(options.console_local_ranks, local_rank) &&
         lets_pass(options.console_ranks, rank);
}

std::string filter_without_ranks(const OutputOptions& options, int world_size) {
  const auto& filter = options.console_ranks;
  if (!filter || filter->empty() || *filter->begin() < world_size) return "";
  const std::string those = world_size == 1 ? "rank 0" : fmt::format("ranks 0-{}", world_size - 1);
  return fmt::format("--ranks-filter lets {} pass, and this round has {}: the console shows nothing of it",
                     ranks_text(*filter), those);
}

std::string prefix_template(const OutputOptions& options, Streams stream, int local_rank) {
  if (options.line_prefix) return *options.line_prefix;
  return std::string(names(options.tee, stream, local_rank) ? kTorchrunPrefix : "");
}

}  // namespace muster::agent
