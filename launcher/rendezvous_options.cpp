#include "launcher/rendezvous_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "launcher/option_values.hpp"
#include "launcher/text.hpp"

namespace muster::launcher {

namespace {

Result<Endpoint> endpoint_of(const RendezvousOptions& options, bool fixed, int max_nodes) {
  if (!options.endpoint.empty()) {
    auto endpoint = parse_endpoint(options.endpoint, fixed ? kDefaultMasterPort : kDefaultRendezvousPort);
    if (!endpoint) return Error{"--rdzv-endpoint", endpoint.error().sentence()};
    return endpoint;
  }
  if (fixed && !options.master_addr.empty()) {
    auto endpoint = parse_endpoint(options.master_addr, kDefaultMasterPort);
    if (!endpoint) return Error{"--master-addr", endpoint.error().sentence()};
    if (options.master_port) endpoint->port = static_cast<std::uint16_t>(*options.master_port);
    return endpoint;
  }
  return Error{"--nnodes", fmt::format("up to {} nodes, but they have no place to meet", max_nodes),
               "name one with --rdzv-endpoint=HOST:PORT, the same on each node, HOST being one of them"};
}

using Keys = std::map<std::string, std::string>;

// As long as it is there; it is taken out, so that what is left is unknown.
std::optional<std::string> take(Keys& keys, const std::string& key) {
  const auto found = keys.find(key);
  if (found == keys.end()) return std::nullopt;
  std::string value = found->second;
  keys.erase(found);
  return value;
}

Result<void> take_times(Keys& keys, RendezvousTimes& times) {
  const std::pair<const char*, std::optional<Duration>*> known[] = {
      {"timeout", &times.join},  // torchrun's name with the static back end
      {"join_timeout", &times.join},
      {"last_call_timeout", &times.last_call},
      {"closed_grace", &times.closed_grace},
      {"broken_grace", &times.broken_grace},
      {"resume_window", &times.resume_window},
      {"settle_window", &times.settle},
      {"first_step_timeout", &times.first_step},
      {"exit_barrier", &times.exit_barrier}};
  for (const auto& [key, time] : known) {
    const auto value = take(keys, key);
    if (!value || (time == &times.exit_barrier && *value == "unlimited")) continue;
    Duration duration{};
    if (!parse_duration(*value, &duration) || duration > std::chrono::hours(24 * 365))
      return not_allowed_in(std::string("--rdzv-conf ") + key, *value,
                            "it takes seconds, or a number with ms, s, m or h");
    *time = duration;
  }
  return {};
}

// N, or N/TIME: N in that time; `per` stays as it is without.
bool parse_window(const std::string& value, rendezvous::WindowedBudget* budget) {
  const auto slash = value.find('/');
  const auto count = parse_integer(value.substr(0, slash), 0, rendezvous::max_restarts_limit);
  if (!count) return false;
  budget->count = static_cast<int>(*count);
  if (slash == std::string::npos) return true;
  return parse_duration(value.substr(slash + 1), &budget->per) && budget->per >= std::chrono::seconds(1) &&
         budget->per <= std::chrono::hours(24 * 365);
}

// As above, or unlimited.
Result<void> take_changes(Keys& keys, rendezvous::WindowedBudget& changes) {
  const auto value = take(keys, "membership_changes");
  if (!value) return {};
  if (*value == "unlimited") {
    changes.count = rendezvous::unlimited;
    return {};
  }
  if (!parse_window(*value, &changes))
    return not_allowed_in("--rdzv-conf membership_changes", *value,
                          "it takes a number for an hour, NUMBER/TIME as in 20/30m, or unlimited");
  return {};
}

Result<void> take_truth(Keys& keys, const char* key, std::optional<bool>& truth) {
  const auto value = take(keys, key);
  if (!value) return {};
  std::string word = *value;
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const bool yes = is_one_of({"1", "true", "t", "yes", "y"});
  if (!yes && !is_one_of({"0", "false", "f", "no", "n"}))
    return not_allowed_in(std::string("--rdzv-conf ") + key, *value, "it takes true or false");
  truth = yes;
  return {};
}

// Job scripts that quote twice leave a pair of quotes in the argument: torchrun would take them for a part of the
// first key and of the last value, and go on with neither.
std::string without_quotes(const std::string& text) {
  const bool quoted =
      text.size() > 1 && text.front() == text.back() && (text.front() == '\'' || text.front() == '"');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

Result<void> parse_rendezvous_conf(Keys& conf, const std::string& given) {
  for (const std::string& part : parts_of(without_quotes(given), ',')) {
    const std::string pair = trimmed(part);
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    const std::string key = trimmed(pair.substr(0, equals));
    if (key.empty() || equals == std::string::npos)
      return Error{"", fmt::format("'{}' is not allowed", pair), "it takes KEY=VALUE,KEY=VALUE"};
    conf[key] = trimmed(pair.substr(equals + 1));
  }
  return {};
}

Result<std::optional<rendezvous::WindowedBudget>> take_restart_window(Keys& conf) {
  const auto value = take(conf, "restart_window");
  if (!value) return std::optional<rendezvous::WindowedBudget>();
  rendezvous::WindowedBudget window;
  if (value->find('/') == std::string::npos || !parse_window(*value, &window) || window.count < 1)
    return not_allowed_in("--rdzv-conf restart_window", *value, "it takes NUMBER/TIME, as in 3/10m");
  return std::optional(window);
}

Result<Meeting> make_meeting(const RendezvousOptions& options, int min_nodes, int max_nodes) {
  const bool by_master = options.endpoint.empty() && !options.master_addr.empty();
  const std::string backend = !options.backend.empty() ? options.backend : by_master ? "static" : "c10d";
  const bool fixed = backend == "static";
  if (!fixed && backend != "c10d")
    return not_allowed_in("--rdzv-backend", backend, "it takes c10d or static");
  if (fixed && min_nodes != max_nodes)
    return Error{"--rdzv-backend", "'static' takes a fixed number of nodes",
                 fmt::format("give --nnodes={} or --rdzv-backend=c10d", max_nodes)};
  Meeting meeting;
  const auto endpoint = endpoint_of(options, fixed, max_nodes);
  if (!endpoint) return endpoint.error();
  meeting.endpoint = *endpoint;
  if (meeting.endpoint.port == 0)
    return Error{options.endpoint.empty() ? "--master-port" : "--rdzv-endpoint",
                 "port 0 would be another one on each node", "name a port from 1 to 65535"};
  if (options.node_rank && *options.node_rank >= max_nodes)
    return Error{"--node-rank",
                 fmt::format("{} is not below the number of nodes, {}", *options.node_rank, max_nodes)};
  meeting.node_rank = options.node_rank;
  meeting.local_addr = options.local_addr;
  Keys keys = options.conf;
  if (auto taken = take_times(keys, meeting.times); !taken) return taken.error();
  if (auto taken = take_changes(keys, meeting.membership_changes); !taken) return taken.error();
  if (auto taken = take_truth(keys, "is_host", meeting.is_host); !taken) return taken.error();
  std::optional<bool> allow_chaos;
  if (auto taken = take_truth(keys, "allow_chaos", allow_chaos); !taken) return taken.error();
  meeting.allow_chaos = allow_chaos.value_or(false);
  for (const char* file : {"token_file", "tls_cert", "tls_key", "tls_ca"})
    if (const auto found = keys.find(file); found != keys.end() && found->second.empty())
      return Error{fmt::format("--rdzv-conf {}", file), "it is empty", "name a file, or leave it out"};
  meeting.token_file = take(keys, "token_file").value_or("");
  meeting.tls.certificate = take(keys, "tls_cert").value_or("");
  meeting.tls.key = take(keys, "tls_key").value_or("");
  meeting.tls.authority = take(keys, "tls_ca").value_or("");
  for (const auto& [key, value] : keys) meeting.unknown_keys.push_back(key);
  return meeting;
}

}  // namespace muster::launcher
