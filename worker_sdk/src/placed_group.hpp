// A process group for buffers of either place: those in the host's memory go through a group for the host, those on a
// device through a group for devices.
//
// Without a group for devices, and for sends and receives, what lies on the device is copied to the host when the call is
// made, travels from there, and is copied back by who waits for it. Both kinds share the order of calls with the
// host's own.
#pragma once

#include <memory>

#include "muster/worker/accelerator.hpp"

namespace muster::worker {

/// `device` may be null. The accelerator must outlive it.
std::unique_ptr<ProcessGroup> make_placed_group(std::unique_ptr<ProcessGroup> host,
                                                std::unique_ptr<ProcessGroup> device,
                                                Accelerator& accelerator);

}  // namespace muster::worker
