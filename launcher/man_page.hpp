// muster.1, made from the option table.
#pragma once

#include <string>

namespace muster::launcher {

/// In roff with the man macros. It holds no date, so that the same sources give the same page.
std::string man_page(const std::string& version);

}  // namespace muster::launcher
