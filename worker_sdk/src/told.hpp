// What the launcher has told by variables, for parts that work as well without: Environment::read() refuses what is
// malformed, here it counts as not told.
#pragma once

#include <cstdint>
#include <string>

namespace muster::worker {

/// From 0 on; `otherwise` if the variable is not there or holds no such number.
std::int64_t told_number(const char* variable, std::int64_t otherwise);
/// Empty if it is not there.
std::string told_text(const char* variable);

}  // namespace muster::worker
