#include "launcher/answers.hpp"

#include "launcher/completion.hpp"
#include "launcher/config.hpp"
#include "launcher/help.hpp"
#include "launcher/man_page.hpp"

namespace muster::launcher {

std::optional<std::string> answer_to(const LauncherOptions& options, const std::string& version) {
  if (options.help) return help_text();
  if (options.version) return "muster " + version + "\n";
  if (!options.print_completion.empty()) return completion_for(options.print_completion);
  if (options.print_man) return man_page(version);
  if (options.print_config) return config_text(options);
  return std::nullopt;
}

}  // namespace muster::launcher
