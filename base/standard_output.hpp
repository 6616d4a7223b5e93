// Whether what a program printed has reached anyone.
#pragma once

#include <string_view>

namespace muster {

/// Writes what is still kept back of standard output; to be called last, as a full disk is often told of only here.
/// False, and a line on standard error in the name of `program`, if this or an earlier write failed.
bool flush_standard_output(std::string_view program);

}  // namespace muster
