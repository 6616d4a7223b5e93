// The group of a world of one: no network, and every operation is done when the call returns.
#pragma once

#include <memory>

#include "muster/worker/process_group.hpp"

namespace muster::worker {

std::unique_ptr<ProcessGroup> make_single_group();

}  // namespace muster::worker
