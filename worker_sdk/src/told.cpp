#include "worker_sdk/src/told.hpp"

#include <cstdlib>
#include <limits>

#include "base/endpoint.hpp"

namespace muster::worker {

std::int64_t told_number(const char* variable, std::int64_t otherwise) {
  const auto number = parse_integer(told_text(variable), 0, std::numeric_limits<int>::max());
  return number ? *number : otherwise;
}

std::string told_text(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

}  // namespace muster::worker
