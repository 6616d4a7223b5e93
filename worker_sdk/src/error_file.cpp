#include "worker_sdk/src/error_file.hpp"

#include <nlohmann/json.hpp>

namespace muster::worker {

std::string error_json(const std::string& type, const std::string& what, std::int64_t unix_seconds,
                       bool permanent) {
  const auto message = type + ": " + what;
  nlohmann::ordered_json json;
  json["message"]["message"] = message;
  json["message"]["extraInfo"]["py_callstack"] = message;
  json["message"]["extraInfo"]["timestamp"] = std::to_string(unix_seconds);
  if (permanent) json["message"]["extraInfo"]["permanent"] = true;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster::worker
