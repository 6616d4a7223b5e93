// Lists of CPUs as the kernel writes them: "0-3,8".
#pragma once

#include <string>
#include <vector>

namespace muster::agent {

/// Ascending, each once; what is no number is passed over.
std::vector<int> parse_cpu_list(const std::string& text);
std::string cpu_list_text(std::vector<int> cpus);

}  // namespace muster::agent
