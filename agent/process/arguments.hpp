// The arguments of one worker. Pure.
#pragma once

#include <string>
#include <vector>

namespace muster::agent {

/// "${local_rank}" and "$local_rank" become the worker's local rank, as under torchrun; all else stays as it is, "$$"
/// too. The executable's own name is not among the arguments.
std::vector<std::string> with_local_rank(std::vector<std::string> arguments, int local_rank);

}  // namespace muster::agent
