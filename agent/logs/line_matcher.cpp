#include "agent/logs/line_matcher.hpp"

#include <regex.h>

#include <algorithm>

namespace muster::agent {

struct LineMatcher::Regex {
  Regex() = default;
  ~Regex() {
    if (compiled) ::regfree(&expression);
  }
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  regex_t expression{};
  bool compiled = false;
};

Result<LineMatcher> LineMatcher::of_regex(const std::string& expression) {
  auto regex = std::make_shared<Regex>();
  const int code = ::regcomp(&regex->expression, expression.c_str(), REG_EXTENDED);
  if (code != 0) {
    char why[256] = {};
    ::regerror(code, &regex->expression, why, sizeof why);
    return Error{"'" + expression + "'", why, "it takes an extended regular expression, as grep -E does"};
  }
  regex->compiled = true;
  LineMatcher matcher({});
  matcher.regex_ = std::move(regex);
  return matcher;
}

bool LineMatcher::matches(std::string_view line) const {
  if (regex_) {
    regmatch_t within{0, static_cast<regoff_t>(line.size())};
    return ::regexec(&regex_->expression, line.data(), 1, &within, REG_STARTEND) == 0;
  }
  return std::any_of(texts_.begin(), texts_.end(),
                     [line](const std::string& text) { return line.find(text) != std::string_view::npos; });
}

}  // namespace muster::agent
