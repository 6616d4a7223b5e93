// The two ends of what a worker writes to: a pipe, or a terminal of its own.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace muster::agent {

/// Both are close-on-exec. Reading never blocks; the worker's end does.
struct OutputEnds {
  UniqueFd reader;
  UniqueFd worker;
};

Result<OutputEnds> make_pipe();

/// A pseudo-terminal, so that the worker writes line by line and draws its progress bars. It changes no byte
/// of what is written, is nobody's controlling terminal, and is as large as the launcher's own, else 80 by 24.
/// Its reader gets EIO where a pipe's gets the end.
Result<OutputEnds> make_terminal();

}  // namespace muster::agent
