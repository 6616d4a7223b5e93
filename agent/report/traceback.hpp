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
};

/// The last one among these lines that ended the program, whole or with its beginning cut off. Exceptions that
/// Python says it ignored do not count. PyTorch's "[rank1]: " before each line is looked through.
std::optional<Traceback> find_traceback(const std::vector<std::string>& lines);

}  // namespace muster::agent
