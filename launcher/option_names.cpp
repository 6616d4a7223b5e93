// What options and their sections are called.
#include <algorithm>

#include "launcher/option_table.hpp"

namespace muster::launcher {

using enum Section;

const char* heading(Section section) {
  switch (section) {
    case job:
      return "The job";
    case rendezvous:
      return "Several nodes";
    case program:
      return "The program and its environment";
    case logs:
      return "Output and logs";
    case stopping:
      return "Stopping and restarting";
    case placement:
      return "Placement";
    case information:
      return "Information";
    case without_effect:
      return "torchrun's options that are taken and have no effect here";
  }
  return "";
}

std::string with_underscores(std::string long_name) {
  std::replace(long_name.begin() + 2, long_name.end(), '-', '_');
  return long_name;
}

}  // namespace muster::launcher
