// A file with those lines of all workers that match something: torchrun's duplicate filters, and --log-match.
#pragma once

#include <string_view>

#include "agent/logs/line_matcher.hpp"
#include "agent/logs/line_prefix.hpp"
#include "agent/logs/log_file.hpp"

namespace muster::agent {

class MatchedLines {
 public:
  /// Both streams of a worker, or one of them, are looked at.
  MatchedLines(LineMatcher matcher, LogFile file) : matcher_(std::move(matcher)), file_(std::move(file)) {}
  ~MatchedLines() { file_.close(); }
  MatchedLines(const MatchedLines&) = delete;
  MatchedLines& operator=(const MatchedLines&) = delete;

  Result<void> open() { return file_.open(); }
  /// `line`: with its end, if it has one; the matcher sees it without.
  void offer(std::string_view line, const LinePrefix& prefix, std::string_view clock);
  /// After a few lines were offered.
  void flush();

 private:
  LineMatcher matcher_;
  LogFile file_;
  std::string block_;
};

}  // namespace muster::agent
