#include "agent/process/arguments.hpp"

#include <cctype>

namespace muster::agent {

namespace {

const std::string kInBraces = "${local_rank}";
const std::string kBare = "$local_rank";

// "$local_rank2" is another name.
bool name_goes_on(const std::string& text, std::size_t at) {
  if (at >= text.size()) return false;
  const auto byte = static_cast<unsigned char>(text[at]);
  return std::isalnum(byte) != 0 || byte == '_';
}

// "$$local_rank" is a dollar sign and a word to torchrun.
bool is_escaped(const std::string& text, std::size_t at) { return at > 0 && text[at - 1] == '$'; }

}  // namespace

std::vector<std::string> with_local_rank(std::vector<std::string> arguments, int local_rank) {
  const std::string rank = std::to_string(local_rank);
  for (std::string& argument : arguments) {
    for (std::size_t at = argument.find('$'); at != std::string::npos; at = argument.find('$', at + 1)) {
      if (is_escaped(argument, at)) continue;
      if (argument.compare(at, kInBraces.size(), kInBraces) == 0)
        argument.replace(at, kInBraces.size(), rank);
      else if (argument.compare(at, kBare.size(), kBare) == 0 && !name_goes_on(argument, at + kBare.size()))
        argument.replace(at, kBare.size(), rank);
    }
  }
  return arguments;
}

}  // namespace muster::agent
