#include "launcher/temporary_places.hpp"

#include <fmt/format.h>

namespace muster::launcher {

std::vector<TemporaryPlace> temporary_places(const Environment& environment) {
  std::error_code no_current_folder;  // somebody removed it: what is relative to it leads nowhere
  const std::filesystem::path current = std::filesystem::current_path(no_current_folder);
  std::vector<TemporaryPlace> places;
  for (const char* name : {"TMPDIR", "TEMP", "TMP"}) {
    const std::filesystem::path folder = environment(name).value_or("");
    if (!folder.empty() && (folder.is_absolute() || !current.empty()))
      places.push_back({(current / folder).lexically_normal(), name});
  }
  for (const char* folder : {"/tmp", "/var/tmp", "/usr/tmp"}) places.push_back({folder});
  if (!current.empty()) places.push_back({current});
  return places;
}

std::string unusable_place(const TemporaryPlace& place, const std::string& why) {
  return place.named_by.empty()
             ? fmt::format("{} ({})", place.folder.string(), why)
             : fmt::format("{}, which {} names ({})", place.folder.string(), place.named_by, why);
}

}  // namespace muster::launcher
