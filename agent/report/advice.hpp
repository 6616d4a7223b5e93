// What the user can do about a failure. Pure.
#pragma once

#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace muster::agent {

struct Advice {
  std::string guess;  ///< continues the headline: ", most likely out of memory"; may be empty
  std::string next;   ///< continues the headline after "; ": a few words
  std::string more;   ///< the line "what to do"
};

Advice advice_for(const rendezvous::WorkerFailure& failure);

}  // namespace muster::agent
