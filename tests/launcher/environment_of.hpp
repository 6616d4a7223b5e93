// An environment made of the given variables alone.
#pragma once

#include <map>
#include <string>

#include "launcher/options.hpp"

namespace muster::launcher {

inline Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace muster::launcher
