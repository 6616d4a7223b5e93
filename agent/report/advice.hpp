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

/// `python`: the interpreter that the workers were given, if it was chosen for them. A log is only named where there
/// is one.
Advice advice_for(const rendezvous::WorkerFailure& failure, const std::string& python = {});

}  // namespace muster::agent
