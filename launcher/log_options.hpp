// How the values of options about the workers' output are written; what they mean is said in
// agent/logs/output_options.hpp.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace muster::launcher {

/// "0,2" or "0-3,8". Empty: all of them, as torchrun has it.
Result<std::optional<std::set<int>>> parse_rank_set(const std::string& text);

/// "OOM,,error,NaN": texts parted by commas; ",," stands for one comma within a text.
std::vector<std::string> parse_filter_texts(const std::string& text);

}  // namespace muster::launcher
