// What the last screens have in common. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "agent/report/report.hpp"

namespace muster::agent {

/// "  name           value\n", in columns.
std::string field(std::string_view name, std::string_view value);

/// A worker's text or a long sentence: one line, harmless to the screen, and at most so long.
std::string clipped(const std::string& raw, std::size_t max_bytes = 300);

/// How workers of a round ended, a few lines of at most "ranks 0, 2 stopped by muster (SIGTERM) within 0.2 s"; the
/// first of them is called `name`. Times count from `since_unix_ms`. `left_out`: those that are told of elsewhere.
std::string ends_of_round(const JobReport& report, int round, std::int64_t since_unix_ms,
                          std::string_view name, const std::function<bool(const WorkerRecord&)>& left_out);

/// What of the job is still there; empty: nothing.
std::string survivors_text(const JobReport& report);

/// "; status: PATH", "; logs in PATH", or nothing.
std::string status_hint(const JobReport& report);
std::string logs_hint(const JobReport& report);

/// The last screen of a job that was stopped or preempted.
std::string stopped_screen(const JobReport& report);

}  // namespace muster::agent
