#include "base/standard_output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "base/error.hpp"

namespace muster {

bool flush_standard_output(std::string_view program) {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return true;
  const Error error{"standard output", errno != 0 ? errno_text(errno) : "a write to it failed",
                    "what was to be printed is not there in whole"};
  fmt::print(stderr, "{}: {}\n", program, error.sentence());
  return false;
}

}  // namespace muster
