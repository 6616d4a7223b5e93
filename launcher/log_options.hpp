// torchrun's options about the workers' output, and what they mean.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/stream_map.hpp"

namespace muster::launcher {

/// As given; nothing or empty: not given.
struct LogOptions {
  std::optional<StreamMap> redirects;  ///< streams that go to files alone
  std::optional<StreamMap> tee;        ///< streams that go to files and to the console
  std::optional<std::vector<int>>
      console_ranks;                        ///< local ranks whose output the console shows; none given: all
  std::string line_prefix;                  ///< template, "[${role_name}${local_rank}]:"
  std::vector<std::string> stdout_filters;  ///< lines that contain one of them go to a file of their own, too
  std::vector<std::string> stderr_filters;
};

/// "0,2": local ranks. Empty: all of them, as torchrun has it.
Result<std::optional<std::vector<int>>> parse_local_ranks(const std::string& text);

/// "OOM,,error,NaN": texts parted by commas; ",," stands for one comma within a text.
std::vector<std::string> parse_filter_texts(const std::string& text);

}  // namespace muster::launcher
