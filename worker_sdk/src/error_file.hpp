// The file in which a worker leaves its error for the launcher, in torchrun's format.
#pragma once

#include <cstdint>
#include <string>

namespace muster::worker {

/// {"message": {"message": "<type>: <what>", "extraInfo": {"py_callstack": ..., "timestamp": "<seconds>"}}}.
/// The call stack, which torchrun prints, is the message again.
std::string error_json(const std::string& type, const std::string& what, std::int64_t unix_seconds);

}  // namespace muster::worker
