// The daemon's answers to an operator as text for a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rendezvous/protocol/channel_messages.hpp"

namespace muster::rendezvous {

/// Ends with a newline. Fields that are missing are shown as empty, so that an older musterctl can show a
/// newer daemon's answer.
std::string operator_text(OperatorVerb verb, const nlohmann::ordered_json& answer);

}  // namespace muster::rendezvous
