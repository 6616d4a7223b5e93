// How many descriptors may be open: the agent needs up to seven a worker, while workers are to find what the user set.
#pragma once

#include <sys/resource.h>

#include "base/error.hpp"

namespace muster::agent {

/// Raises this process's soft limit of open descriptors to the hard one. The limit as it was.
Result<::rlimit> raise_descriptor_limit();

}  // namespace muster::agent
