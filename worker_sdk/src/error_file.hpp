// The file in which a worker leaves its error for the launcher, in torchrun's format.
#pragma once

#include <cstdint>
#include <string>

namespace muster::worker {

/// {"message": {"message": "<type>: <what>", "extraInfo": {"py_callstack": ..., "timestamp": "<seconds>"}}}.
/// The call stack, which torchrun prints, is the message again. `permanent`: "permanent": true stands in extraInfo
/// too, by which muster's agent knows that trying again cannot help.
std::string error_json(const std::string& type, const std::string& what, std::int64_t unix_seconds,
                       bool permanent);

}  // namespace muster::worker
