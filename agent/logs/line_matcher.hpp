// Which lines also go to a file of their own. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace muster::agent {

class LineMatcher {
 public:
  /// Lines that contain one of the texts.
  explicit LineMatcher(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  /// Lines that have a match of an extended regular expression of POSIX, as `grep -E` takes it: those of the
  /// standard library recurse for each byte of a line.
  static Result<LineMatcher> of_regex(const std::string& expression);

  bool matches(std::string_view line) const;

 private:
  struct Regex;

  std::vector<std::string> texts_;
  std::shared_ptr<const Regex> regex_;
};

}  // namespace muster::agent
