#include "base/time.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace muster {

using namespace std::chrono;

std::string human(Duration duration) {
  if (duration < Duration::zero()) return "-" + human(-duration);
  const double ms = duration_cast<std::chrono::duration<double, std::milli>>(duration).count();
  if (duration == Duration::zero()) return "0 s";
  if (ms < 1) return "under 1 ms";
  if (ms < 100) return fmt::format("{:.0f} ms", ms);
  const auto whole_s = duration_cast<seconds>(duration).count();
  if (whole_s < 60) {
    const double s = ms / 1000;
    return s == std::floor(s) ? fmt::format("{:.0f} s", s) : fmt::format("{:.1f} s", s);
  }
  const auto pair = [](auto big, const char* big_unit, auto small, const char* small_unit) {
    return small == 0 ? fmt::format("{} {}", big, big_unit)
                      : fmt::format("{} {} {} {}", big, big_unit, small, small_unit);
  };
  if (whole_s < 3600) return pair(whole_s / 60, "min", whole_s % 60, "s");
  if (whole_s < 86400) return pair(whole_s / 3600, "h", whole_s % 3600 / 60, "min");
  return pair(whole_s / 86400, "d", whole_s % 86400 / 3600, "h");
}

std::string clock_text(system_clock::time_point when) {
  const auto since_epoch = duration_cast<milliseconds>(when.time_since_epoch());
  return fmt::format("{:%H:%M:%S}.{:03d}", fmt::localtime(system_clock::to_time_t(when)),
                     since_epoch.count() % 1000);
}

std::int64_t unix_time_ms() {
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

bool parse_duration(const std::string& text, Duration* out) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(number) || number < 0) return false;
  const std::string unit(end);
  double factor_s = 0;
  if (unit.empty() || unit == "s") factor_s = 1;
  if (unit == "ms") factor_s = 1e-3;
  if (unit == "m" || unit == "min") factor_s = 60;
  if (unit == "h") factor_s = 3600;
  if (factor_s == 0 || number * factor_s > 1e9) return false;
  *out = duration_cast<Duration>(std::chrono::duration<double>(number * factor_s));
  return true;
}

}  // namespace muster
