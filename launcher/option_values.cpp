#include "launcher/option_values.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/endpoint.hpp"
#include "base/exit_cause.hpp"
#include "launcher/log_options.hpp"
#include "launcher/text.hpp"

namespace muster::launcher {

namespace {

constexpr long kMaxNodes = 100'000;
constexpr std::size_t kMaxIdBytes = 200;

// Why this signal cannot stop a job; empty: it can.
const char* why_not_to_handle(int number) {
  switch (number) {
    case 0:
      return "there is no such signal";
    case SIGKILL:
    case SIGSTOP:
      return "no program can handle it";
    case SIGCHLD:
      return "it says that a worker has ended";
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
      return "it says that a program has crashed";
    default:
      return "";
  }
}

}  // namespace

bool is_conf_key(const std::string& key) {
  if (key == "timeout") return true;  // torchrun's name with the static back end
  const auto known = parts_of(kConfKeys, ' ');
  return std::find(known.begin(), known.end(), key + "=") != known.end();
}

std::string unknown_keys_text(const std::vector<std::string>& keys) {
  return fmt::format("--rdzv-conf: unknown here, so without effect: {}", fmt::join(keys, ", "));
}

Error not_allowed(const std::string& value, const std::string& allowed) {
  return not_allowed_in("", value, allowed);
}

Error not_allowed_in(const std::string& what, const std::string& value, const std::string& allowed) {
  return Error{what, fmt::format("'{}' is not allowed", value), allowed};
}

Result<void> read_workers(WorkerCountWish& workers, const std::string& value) {
  using Way = WorkerCountWish::Way;
  const std::pair<const char*, Way> words[] = {
      {"auto", Way::automatic}, {"cpu", Way::cpu}, {"gpu", Way::gpu}};
  for (const auto& [word, way] : words) {
    if (value != word) continue;
    workers = {way, 0};
    return {};
  }
  const auto number = parse_integer(value, 1, kMaxWorkersPerNode);
  if (!number)
    return not_allowed(value,
                       fmt::format("it takes a number from 1 to {}, or auto, cpu, gpu", kMaxWorkersPerNode));
  workers = {Way::number, static_cast<int>(*number)};
  return {};
}

Result<void> read_nodes(LauncherOptions& options, const std::string& value) {
  const auto colon = value.find(':');
  const auto low = parse_integer(value.substr(0, colon), 1, kMaxNodes);
  const auto high = colon == std::string::npos ? low : parse_integer(value.substr(colon + 1), 1, kMaxNodes);
  if (!low || !high || *low > *high)
    return not_allowed(value,
                       fmt::format("it takes N or MIN:MAX, from 1 to {}, MIN not above MAX", kMaxNodes));
  options.min_nodes = static_cast<int>(*low);
  options.max_nodes = static_cast<int>(*high);
  return {};
}

Result<void> read_id(std::string& id, const std::string& value) {
  if (value.empty() || value.size() > kMaxIdBytes || has_control_characters(value))
    return not_allowed(value, fmt::format("it takes 1 to {} bytes without control characters", kMaxIdBytes));
  id = value;
  return {};
}

Result<void> read_text(std::string& text, const std::string& value, const char* allowed) {
  if (value.empty()) return not_allowed(value, std::string("it takes ") + allowed);
  text = value;
  return {};
}

Result<void> read_number(int& number, const std::string& value, long low, long high) {
  const auto parsed = parse_integer(value, low, high);
  if (!parsed) return not_allowed(value, fmt::format("it takes a number from {} to {}", low, high));
  number = static_cast<int>(*parsed);
  return {};
}

Result<void> read_number(std::optional<int>& number, const std::string& value, long low, long high) {
  int parsed = 0;
  if (const auto read = read_number(parsed, value, low, high); !read) return read;
  number = parsed;
  return {};
}

Result<void> read_time(Duration& time, const std::string& value) {
  if (parse_duration(value, &time) && time <= std::chrono::hours(24)) return {};
  return not_allowed(value, "it takes seconds, or a number with ms, s, m or h; up to 24h");
}

Result<void> read_flag(bool& flag, const std::string& value) {
  const auto number = parse_integer(value, 0, INT32_MAX);
  if (!number) return not_allowed(value, "it takes 1 or 0");
  flag = *number != 0;
  return {};
}

Result<void> read_health_place(std::string& place, const std::string& value) {
  place = value;
  const std::string socket = "unix:";
  if (value.starts_with(socket) && value.size() > socket.size()) return {};
  const auto endpoint = parse_endpoint(value, 0);
  const bool names_its_port = endpoint && *endpoint == *parse_endpoint(value, 1);
  if (names_its_port && !value.starts_with(socket)) return {};
  return not_allowed(value, "it takes HOST:PORT or unix:PATH");
}

Result<void> read_numa_mode(std::optional<NumaMode>& mode, const std::string& value) {
  const std::pair<const char*, NumaMode> words[] = {{"node", NumaMode::node},
                                                    {"socket", NumaMode::socket},
                                                    {"exclusive", NumaMode::exclusive},
                                                    {"core-complex", NumaMode::core_complex}};
  for (const auto& [word, meant] : words) {
    if (value != word) continue;
    mode = meant;
    return {};
  }
  return not_allowed(value, "it takes node, socket, exclusive or core-complex");
}

Result<void> read_streams(std::optional<StreamMap>& streams, const std::string& value) {
  auto map = parse_stream_map(value);
  if (!map)
    return not_allowed(value, "it takes 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or LOCAL-RANK:0-3,...");
  streams = std::move(*map);
  return {};
}

Result<void> read_rank_set(std::optional<std::set<int>>& ranks, const std::string& value) {
  auto parsed = parse_rank_set(value);
  if (!parsed) return parsed.error();
  ranks = std::move(*parsed);
  return {};
}

Result<void> read_expression(std::optional<agent::LineMatcher>& matcher, const std::string& value) {
  auto compiled = agent::LineMatcher::of_regex(value);
  if (!compiled) return Error{"", compiled.error().what + ": " + compiled.error().why, compiled.error().next};
  matcher = std::move(*compiled);
  return {};
}

Result<void> read_signals(LauncherOptions& options, const std::string& value) {
  options.signals_to_handle.emplace();
  for (const std::string& part : parts_of(value, ',')) {
    const std::string name = trimmed(part);
    if (name.empty()) continue;
    const int number = signal_called(name);
    if (const std::string why = why_not_to_handle(number); !why.empty())
      options.notes.push_back(fmt::format("--signals-to-handle: {} is left out, {}", name, why));
    else
      options.signals_to_handle->push_back(number);
  }
  return {};
}

Result<void> check_word(const std::string& value, std::initializer_list<const char*> words) {
  if (std::any_of(words.begin(), words.end(), [&](const char* word) { return value == word; })) return {};
  return not_allowed(value, fmt::format("it takes {}", fmt::join(words, ", ")));
}

}  // namespace muster::launcher
