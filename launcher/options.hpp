// The command line: torchrun's options as muster takes them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/logs/output_options.hpp"
#include "base/error.hpp"
#include "base/numa_mode.hpp"
#include "base/time.hpp"
#include "launcher/rendezvous_options.hpp"
#include "launcher/store_options.hpp"
#include "launcher/worker_variables.hpp"

namespace muster::launcher {

/// How many workers --nproc-per-node asks for.
struct WorkerCountWish {
  enum class Way { number, automatic, cpu, gpu };
  Way way = Way::number;
  int number = 1;  ///< with Way::number
};

/// Where an option's value comes from. A warning about an option without effect names only what was set.
enum class Origin { by_default, file, environment, flag };

struct LauncherOptions {
  WorkerCountWish workers;
  int min_nodes = 1;
  int max_nodes = 1;
  bool standalone = false;
  std::string role = "default";
  RendezvousOptions rendezvous;
  std::optional<Meeting> meeting;  ///< with more than one node: what `rendezvous` means
  StoreOptions store;
  int max_restarts = 0;
  std::optional<rendezvous::WindowedBudget> restart_window;
  bool no_python = false;
  bool module = false;
  bool run_path = false;
  VariableChanges variables;
  std::string
      log_dir;         ///< may have fields, see run_folder.hpp; empty: a fresh folder in the temporary folder
  std::string run_id;  ///< empty: with one node a fresh one; with more "none", as torchrun's
  std::string node_id;  ///< empty: made of this host's name
  agent::OutputOptions logs;
  Duration stop_grace = std::chrono::seconds(30);
  std::optional<Duration> shutdown_timeout;           ///< torchrun's grace at the end of the job
  std::optional<Duration> restart_grace;              ///< nothing: as stop_grace
  std::optional<Duration> rescale_grace;              ///< nothing: as stop_grace
  std::optional<std::vector<int>> signals_to_handle;  ///< numbers; nothing: the usual ones
  std::optional<NumaMode> numa_binding;
  bool virtual_local_rank = false;
  bool isolate_gpus = false;
  std::optional<std::string> gpus;  ///< those that the workers may see
  std::string health;               ///< HOST:PORT or unix:PATH; empty: none
  Duration progress_timeout{};      ///< 0: none
  bool expect_done = false;         ///< an exit with 0 counts only for workers that said that they were done
  bool die_with_parent = false;
  bool help = false;
  bool version = false;
  bool dry_run = false;
  bool print_config = false;
  bool print_man = false;
  std::string print_completion;  ///< for which shell; empty: not asked for
  std::vector<std::string>
      without_effect;              ///< of a meeting: options that were set, as they were set, for nothing
  std::vector<std::string> notes;  ///< lines for the user about what was set, without prefix and newline

  std::vector<std::string> program;  ///< program, script or module, then its arguments, untouched
  std::map<std::string, std::vector<std::string>> values;  ///< as set, by long name; a flag's are "1" or "0"
  std::map<std::string, Origin> origins;                   ///< by long name, "--log-dir"; absent: by_default
  std::map<std::string, std::string>
      names;  ///< of what was set, by long name: "PET_LOG_DIR", as the user knows it
};

/// The value of an environment variable, or nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();
/// All of this process's, as "NAME=value".
std::vector<std::string> own_environment();

/// `words`: the command line without the program name. A flag beats the option's variable, which beats the file that
/// --config names, which beats the default. An error is the user's: its sentence names the option and what is
/// allowed. What only prints something (--help and its like) needs no program.
Result<LauncherOptions> parse_command_line(const std::vector<std::string>& words,
                                           const Environment& environment);

constexpr int kMaxWorkersPerNode = 4096;

}  // namespace muster::launcher
