// What will be started, and the lines that say so.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/options.hpp"
#include "launcher/placement.hpp"
#include "launcher/target.hpp"
#include "launcher/worker_count.hpp"

namespace muster::launcher {

/// From the first signal to SIGKILL, by what workers are ended for.
struct Graces {
  Duration stop{};     ///< the job ends
  Duration restart{};  ///< a worker failed
  Duration rescale{};  ///< the set of nodes changes
};

struct Plan {
  std::string run_id;
  std::string node;
  std::string host;  ///< this host's short name
  WorkerCount workers;
  Target target;
  int max_restarts = 0;
  std::optional<rendezvous::WindowedBudget> restart_window;  ///< within max_restarts
  Graces graces;
  std::optional<std::vector<int>> signals_to_handle;
  int usable_cpus = 1;
  int min_nodes = 1;
  int max_nodes = 1;
  std::optional<Meeting> meeting;  ///< with more than one node
  StoreOptions store;
  agent::OutputOptions output;
  std::string role = "default";
  std::vector<std::string> without_effect;  ///< options that were set and change nothing
  std::vector<std::string> notes;           ///< more lines about what was set
  std::filesystem::path run_folder;         ///< empty: no logs
  VariableChanges variables;                ///< to what workers inherit
  Placement placement;
  std::string health;           ///< HOST:PORT or unix:PATH; empty: none
  Duration progress_timeout{};  ///< 0: none
  bool expect_done = false;     ///< an exit with 0 counts only for workers that said that they were done
  pid_t dies_with = 0;          ///< the process whose end is that of the job; 0: none
};

/// What is known of a meeting once the endpoint was looked at.
struct Standing {
  std::string address;  ///< this node's, for the others; empty: not known yet
  bool hosted_here = false;
};

/// All but the node's name and the run folder.
Plan make_plan(const LauncherOptions& options, const Target& target, const WorkerCount& workers,
               int usable_cpus, const std::string& run_id);

/// This host's name up to its first dot. For people and for the node's id; nothing resolves it.
std::string short_host_name();

/// Whole lines, each beginning with "muster: ".
std::string start_lines(const Plan& plan, const Standing& standing = {});

/// What of the options has no effect, or not the effect that may be meant; without prefix and newline.
std::vector<std::string> warnings_of(const Plan& plan, bool endpoint_is_loopback);

}  // namespace muster::launcher
