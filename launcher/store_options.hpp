// How a job's worker stores are provided: the keys of --rdzv-conf that one node understands as well as many.
#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "base/port_range.hpp"
#include "base/time.hpp"

namespace muster::launcher {

struct StoreOptions {
  bool in_rank_zero = false;  ///< worker_store=rank0: worker 0 serves it, else this node's agent
  PortRange ports;            ///< store_port; none: of the kernel's choice
  Duration stall_after = std::chrono::seconds(60);  ///< zero: a round that does not get on is not explained
};

/// Takes its keys out of `conf`. The error is the user's.
Result<StoreOptions> take_store_options(std::map<std::string, std::string>& conf);

}  // namespace muster::launcher
