// A worker's word that trying again cannot help.
#pragma once

#include <stdexcept>

namespace muster::worker {

/// Thrown out of a worker's main, it makes run_main() say in the error file that no restart can mend this: muster ends
/// the job with exit code 1 and starts nothing again. For what came of good options and good data (a loss that is not a
/// number, a result that cannot be written); a mistake in those is a std::invalid_argument.
class PermanentError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace muster::worker
