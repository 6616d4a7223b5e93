// Options that only ask for a text: --help, --version, --print-config, --print-completion, --print-man. Pure.
#pragma once

#include <optional>
#include <string>

#include "launcher/options.hpp"

namespace muster::launcher {

/// Nothing if a job is to be run.
std::optional<std::string> answer_to(const LauncherOptions& options, const std::string& version);

}  // namespace muster::launcher
