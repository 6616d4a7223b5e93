#include "muster/worker/environment.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "base/endpoint.hpp"

namespace muster::worker {
namespace {

constexpr long max_int = std::numeric_limits<int>::max();

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value) return std::nullopt;
  return std::string(value);
}

[[noreturn]] void refuse(const char* name, const std::string& value, const std::string& expected) {
  throw std::invalid_argument(std::string(name) + "=" + value + ": expected " + expected);
}

std::string range_text(long low, long high) {
  if (high == max_int) return "a whole number of at least " + std::to_string(low);
  return "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
}

long integer(const char* name, long low, long high, long otherwise) {
  const auto value = variable(name);
  if (!value) return otherwise;
  const auto number = parse_integer(*value, low, high);
  if (!number) refuse(name, *value, range_text(low, high));
  return *number;
}

bool flag(const char* name) {
  const auto value = variable(name);
  if (!value) return false;
  std::string lower = *value;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array yes{"true", "1", "yes", "y", "on"};
  constexpr std::array no{"false", "0", "no", "n", "off", ""};
  if (std::find(yes.begin(), yes.end(), lower) != yes.end()) return true;
  if (std::find(no.begin(), no.end(), lower) == no.end()) refuse(name, *value, "True or False");
  return false;
}

/// Words with commas between them; the only one that is known so far.
bool wants_collectives_debugged() {
  constexpr const char* known = "collectives";
  std::istringstream words(variable("MUSTER_DEBUG").value_or(""));
  bool found = false;
  for (std::string word; std::getline(words, word, ',');) {
    if (word != known) refuse("MUSTER_DEBUG", word, std::string("nothing or ") + known);
    found = true;
  }
  return found;
}

void require(const char* name, const std::string& because) {
  const auto value = variable(name);
  if (!value || value->empty()) throw std::invalid_argument(std::string(name) + " is not set: " + because);
}

}  // namespace

Environment Environment::read() {
  Environment environment;
  if (variable("RANK") || variable("WORLD_SIZE")) {
    require("WORLD_SIZE", "RANK is set, so a launcher must give it too");
    require("RANK", "WORLD_SIZE is set, so a launcher must give it too");
  }
  environment.world_size = static_cast<int>(integer("WORLD_SIZE", 1, max_int, 1));
  environment.rank = static_cast<int>(integer("RANK", 0, environment.world_size - 1, 0));
  environment.local_world_size = static_cast<int>(integer("LOCAL_WORLD_SIZE", 1, environment.world_size, 1));
  environment.local_rank = static_cast<int>(integer("LOCAL_RANK", 0, max_int, 0));
  environment.group_rank = static_cast<int>(integer("GROUP_RANK", 0, max_int, 0));
  if (environment.world_size > 1) {
    const std::string because = "rank 0's store is reached through it when WORLD_SIZE is more than 1";
    require("MASTER_ADDR", because);
    require("MASTER_PORT", because);
  }
  environment.master_addr = variable("MASTER_ADDR").value_or(environment.master_addr);
  environment.master_port = static_cast<std::uint16_t>(integer("MASTER_PORT", 1, 65535, 0));
  environment.agent_store = flag("TORCHELASTIC_USE_AGENT_STORE");
  environment.restart_count = static_cast<int>(integer("TORCHELASTIC_RESTART_COUNT", 0, max_int, 0));
  environment.max_restarts = static_cast<int>(integer("TORCHELASTIC_MAX_RESTARTS", 0, max_int, 0));
  environment.round = static_cast<int>(integer("MUSTER_ROUND", 0, max_int, 0));
  environment.run_id = variable("TORCHELASTIC_RUN_ID").value_or(environment.run_id);
  environment.error_file = variable("TORCHELASTIC_ERROR_FILE").value_or("");
  environment.debug_collectives = wants_collectives_debugged();
  return environment;
}

}  // namespace muster::worker
