#include "launcher/option_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/endpoint.hpp"

namespace muster::launcher {

namespace {

constexpr long kMaxRestarts = 1'000'000;
constexpr long kMaxNodes = 100'000;
constexpr std::size_t kMaxIdBytes = 200;

Error not_allowed(const std::string& value, const std::string& allowed) {
  return Error{"", fmt::format("'{}' is not allowed", value), allowed};
}

Result<void> apply_workers(LauncherOptions& options, const std::string& value) {
  using Way = WorkerCountWish::Way;
  const std::pair<const char*, Way> words[] = {
      {"auto", Way::automatic}, {"cpu", Way::cpu}, {"gpu", Way::gpu}};
  for (const auto& [word, way] : words) {
    if (value != word) continue;
    options.workers = {way, 0};
    return {};
  }
  const auto number = parse_integer(value, 1, kMaxWorkersPerNode);
  if (!number)
    return not_allowed(value,
                       fmt::format("it takes a number from 1 to {}, or auto, cpu, gpu", kMaxWorkersPerNode));
  options.workers = {Way::number, static_cast<int>(*number)};
  return {};
}

Result<void> apply_nodes(LauncherOptions& options, const std::string& value) {
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

Result<void> apply_restarts(LauncherOptions& options, const std::string& value) {
  const auto number = parse_integer(value, 0, kMaxRestarts);
  if (!number) return not_allowed(value, fmt::format("it takes a number from 0 to {}", kMaxRestarts));
  options.max_restarts = static_cast<int>(*number);
  return {};
}

Result<void> apply_grace(LauncherOptions& options, const std::string& value) {
  if (parse_duration(value, &options.stop_grace) && options.stop_grace <= std::chrono::hours(24)) return {};
  return not_allowed(value, "it takes seconds, or a number with ms, s, m or h; up to 24h");
}

// Ids become variables of workers, names of folders and words of log lines.
Result<void> apply_id(std::string& id, const std::string& value) {
  const bool plain = std::none_of(value.begin(), value.end(),
                                  [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; });
  if (value.empty() || value.size() > kMaxIdBytes || !plain)
    return not_allowed(value, fmt::format("it takes 1 to {} bytes without control characters", kMaxIdBytes));
  id = value;
  return {};
}

Result<void> apply_log_dir(LauncherOptions& options, const std::string& value) {
  if (value.empty()) return not_allowed(value, "it takes the path of a folder, or /dev/null for no logs");
  options.log_dir = value;
  return {};
}

Result<void> apply_text(std::string& text, const std::string& value, const char* allowed) {
  if (value.empty()) return not_allowed(value, allowed);
  text = value;
  return {};
}

Result<void> apply_number(std::optional<int>& number, const std::string& value, long low, long high) {
  const auto parsed = parse_integer(value, low, high);
  if (!parsed) return not_allowed(value, fmt::format("it takes a number from {} to {}", low, high));
  number = static_cast<int>(*parsed);
  return {};
}

template <bool LauncherOptions::*Member>
Result<void> apply_flag(LauncherOptions& options, const std::string& value) {
  const auto number = parse_integer(value, 0, INT32_MAX);
  if (!number) return not_allowed(value, "it takes 1 or 0");
  options.*Member = *number != 0;
  return {};
}

constexpr OptionRow kTable[] = {
    {"", "--nproc-per-node", "PET_NPROC_PER_NODE", "N",
     "workers on this node: a number, or auto, cpu, gpu for what this process may use (1)", apply_workers},
    {"", "--nnodes", "PET_NNODES", "N", "nodes of the job: N or MIN:MAX (1)", apply_nodes},
    {"", "--standalone", "PET_STANDALONE", "", "one node, nothing to agree on with others",
     apply_flag<&LauncherOptions::standalone>},
    {"", "--max-restarts", "PET_MAX_RESTARTS", "N", "restarts of all workers after failures (0)",
     apply_restarts},
    {"", "--rdzv-id", "PET_RDZV_ID", "ID", "name of the job, the same on each node (a fresh one)",
     [](LauncherOptions& options, const std::string& value) { return apply_id(options.run_id, value); }},
    {"", "--rdzv-endpoint", "PET_RDZV_ENDPOINT", "HOST:PORT",
     "where several nodes meet, the same on each of them; the node that has HOST hosts it (port 29400)",
     [](LauncherOptions& options, const std::string& value) {
       return apply_text(options.rendezvous.endpoint, value, "it takes HOST or HOST:PORT");
     }},
    {"", "--rdzv-backend", "PET_RDZV_BACKEND", "NAME",
     "c10d, or static: --master-addr and --master-port are the endpoint (c10d)",
     [](LauncherOptions& options, const std::string& value) {
       return apply_text(options.rendezvous.backend, value, "it takes c10d or static");
     }},
    {"", "--rdzv-conf", "PET_RDZV_CONF", "K=V,...",
     "join_timeout, worker_store, store_port, stall_after, ...; see docs/multi-node.md, docs/worker-store.md",
     [](LauncherOptions& options, const std::string& value) {
       return parse_rendezvous_conf(options.rendezvous.conf, value);
     },
     true},
    {"", "--node-rank", "PET_NODE_RANK", "N", "the place that this node would like to have, from 0",
     [](LauncherOptions& options, const std::string& value) {
       return apply_number(options.rendezvous.node_rank, value, 0, kMaxNodes);
     }},
    {"", "--master-addr", "PET_MASTER_ADDR", "HOST", "with static: the endpoint's host",
     [](LauncherOptions& options, const std::string& value) {
       return apply_text(options.rendezvous.master_addr, value, "it takes a host name or an address");
     }},
    {"", "--master-port", "PET_MASTER_PORT", "PORT", "with static: the endpoint's port (29500)",
     [](LauncherOptions& options, const std::string& value) {
       return apply_number(options.rendezvous.master_port, value, 0, 65535);
     }},
    {"", "--local-addr", "PET_LOCAL_ADDR", "ADDRESS",
     "address of this node that the others' workers connect to (the one that leads to the endpoint)",
     [](LauncherOptions& options, const std::string& value) {
       return apply_text(options.rendezvous.local_addr, value, "it takes an address of this node");
     }},
    {"", "--node-id", "", "ID", "name of this node (the host's name)",
     [](LauncherOptions& options, const std::string& value) { return apply_id(options.node_id, value); }},
    {"", "--stop-grace", "", "TIME", "from SIGTERM to SIGKILL when workers are stopped: 30, 500ms, 2m (30)",
     apply_grace},
    {"", "--log-dir", "PET_LOG_DIR", "FOLDER",
     "where FOLDER/JOB/[NODE/]round-N/rank-R/{stdout,stderr}.log go; /dev/null: nowhere (a fresh temporary "
     "one)",
     apply_log_dir},
    {"", "--no-python", "PET_NO_PYTHON", "", "run the program directly, whatever its name",
     apply_flag<&LauncherOptions::no_python>},
    {"-m", "--module", "PET_MODULE", "", "the program is a Python module, as with python -m",
     apply_flag<&LauncherOptions::module>},
    {"-h", "--help", "", "", "print this and leave", apply_flag<&LauncherOptions::help>},
    {"", "--version", "", "", "print the version and leave", apply_flag<&LauncherOptions::version>},
};

}  // namespace

std::span<const OptionRow> option_table() { return kTable; }

}  // namespace muster::launcher
