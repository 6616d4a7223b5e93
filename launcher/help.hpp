// What muster --help prints, made from the option table.
#pragma once

#include <string>

namespace muster::launcher {

std::string help_text();

}  // namespace muster::launcher
