// What a Python traceback says, for the headline. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

struct Traceback {
  std::string error;  ///< "ValueError: shape mismatch"
  std::string
      place;  ///< "train.py line 42": the innermost call in code that is no installed library; may be empty
  /// Nothing but what an ending Python prints by itself stands after it. Else the program went on: it may have handled
  /// the exception.
  bool last = false;
};

/// The last one among these lines, whole or with its beginning cut off. Exceptions that Python says it ignored do not
/// count, those of threads and child processes only where there is no other. PyTorch's "[rank1]: " before each line is
/// looked through; since PyTorch writes it before what nobody caught, such a one is the last whatever follows.
std::optional<Traceback> find_traceback(const std::vector<std::string>& lines);

}  // namespace muster::agent
