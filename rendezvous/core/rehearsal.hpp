// Which signals an operator may send into a job to rehearse a fault (musterctl chaos).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace muster::rendezvous {

enum class Victim : std::uint8_t { worker, agent };

/// "KILL", "SIGKILL" or "9", in capitals or not. The error says what is allowed.
Result<int> rehearsal_signal(Victim victim, const std::string& text);

/// Why this one may not be sent; nothing: it may.
std::optional<Error> wrong_rehearsal_signal(Victim victim, int signal_number);

}  // namespace muster::rendezvous
