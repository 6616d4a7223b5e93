#include "launcher/store_options.hpp"

#include "launcher/option_values.hpp"

namespace muster::launcher {

Result<StoreOptions> take_store_options(std::map<std::string, std::string>& conf) {
  StoreOptions options;
  if (const auto given = conf.extract("worker_store"); given) {
    if (given.mapped() != "agent" && given.mapped() != "rank0")
      return not_allowed_in("--rdzv-conf worker_store", given.mapped(), "it takes agent or rank0");
    options.in_rank_zero = given.mapped() == "rank0";
  }
  if (const auto given = conf.extract("store_port"); given) {
    const auto ports = parse_port_range(given.mapped());
    if (!ports)
      return not_allowed_in("--rdzv-conf store_port", given.mapped(),
                            "it takes a port from 1 to 65535, or FIRST-LAST");
    options.ports = *ports;
  }
  if (const auto given = conf.extract("stall_after"); given) {
    constexpr auto longest = std::chrono::hours(24 * 365);
    if (!parse_duration(given.mapped(), &options.stall_after) || options.stall_after > longest)
      return not_allowed_in("--rdzv-conf stall_after", given.mapped(),
                            "it takes seconds, or a number with ms, s, m or h");
  }
  return options;
}

}  // namespace muster::launcher
