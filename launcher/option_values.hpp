// How values of options are read and checked. An error's `what` is left empty: see option_table.hpp.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/logs/line_matcher.hpp"
#include "base/error.hpp"
#include "base/time.hpp"
#include "launcher/options.hpp"

namespace muster::launcher {

/// Of --rdzv-conf, for completion.
inline constexpr const char* kConfKeys =
    "join_timeout= last_call_timeout= restart_window= membership_changes= first_step_timeout= settle_window= "
    "exit_barrier= "
    "closed_grace= broken_grace= resume_window= is_host= worker_store= store_port= stall_after= token_file= "
    "tls_cert= "
    "tls_key= "
    "tls_ca= allow_chaos=";

/// Of --rdzv-conf, on one node or several.
bool is_conf_key(const std::string& key);
/// The line for the user.
std::string unknown_keys_text(const std::vector<std::string>& keys);

/// "'VALUE' is not allowed; ALLOWED".
Error not_allowed(const std::string& value, const std::string& allowed);
/// "WHAT: 'VALUE' is not allowed; ALLOWED".
Error not_allowed_in(const std::string& what, const std::string& value, const std::string& allowed);

Result<void> read_workers(WorkerCountWish& workers, const std::string& value);
/// N or MIN:MAX.
Result<void> read_nodes(LauncherOptions& options, const std::string& value);
/// Ids become variables of workers, names of folders and words of log lines.
Result<void> read_id(std::string& id, const std::string& value);
/// Not empty; `allowed` completes "it takes ...".
Result<void> read_text(std::string& text, const std::string& value, const char* allowed);
Result<void> read_number(std::optional<int>& number, const std::string& value, long low, long high);
Result<void> read_number(int& number, const std::string& value, long low, long high);
/// Up to 24 hours.
Result<void> read_time(Duration& time, const std::string& value);
/// Any integer: zero is no, all others are yes, as torchrun reads a flag's variable.
Result<void> read_flag(bool& flag, const std::string& value);
/// HOST:PORT or unix:PATH.
Result<void> read_health_place(std::string& place, const std::string& value);
Result<void> read_numa_mode(std::optional<NumaMode>& mode, const std::string& value);
Result<void> read_streams(std::optional<StreamMap>& streams, const std::string& value);
Result<void> read_rank_set(std::optional<std::set<int>>& ranks, const std::string& value);
/// As grep -E takes it.
Result<void> read_expression(std::optional<agent::LineMatcher>& matcher, const std::string& value);
/// "SIGTERM,SIGINT": numbers of those that are known and can be handled; the others are named in `notes`.
Result<void> read_signals(LauncherOptions& options, const std::string& value);
/// One of these.
Result<void> check_word(const std::string& value, std::initializer_list<const char*> words);

}  // namespace muster::launcher
