// What a worker printed, for a screen that it must not touch.
#pragma once

#include <string>
#include <string_view>

namespace muster::agent {

/// Colours and tabs stay; what would move the cursor, clear the screen or rename the window goes.
std::string harmless(std::string_view text);

}  // namespace muster::agent
