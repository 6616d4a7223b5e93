// A message of the daemon's as one line of a transcript.
#pragma once

#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

std::string describe(const DaemonMessage& message);

}  // namespace muster::rendezvous
