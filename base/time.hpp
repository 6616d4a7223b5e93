// Time as the cores see it: a value that comes in as an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace muster {

using Duration = std::chrono::nanoseconds;

/// A point on a monotonic clock whose zero means nothing. Only differences count.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// "0 s", "under 1 ms", "14 ms", "0.6 s", "4 min 12 s", "1 h 3 min": two units at most, for people.
std::string human(Duration duration);

/// A point on the wall clock as "14:03:11.482", local time, for people.
std::string clock_text(std::chrono::system_clock::time_point when);

/// Of the wall clock, now.
std::int64_t unix_time_ms();

/// "30", "30s", "500ms", "2m", "1h" (a bare number counts seconds). Nothing for anything else or for a
/// negative.
bool parse_duration(const std::string& text, Duration* out);

}  // namespace muster
