#include "launcher/node_id.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <fmt/format.h>

#include "launcher/run_folder.hpp"
#include "launcher/temporary_places.hpp"

namespace muster::launcher {

namespace {

constexpr int kLaunchersPerHostMax = 4096;

// Only whoever holds the lock has the name; the file itself stays and means nothing.
UniqueFd locked(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
  return fd;
}

std::optional<std::filesystem::path> folder_of_locks(const Environment& environment) {
  for (const TemporaryPlace& place : temporary_places(environment))
    if (const auto folder = own_temporary_folder(place.folder)) return *folder;
  return std::nullopt;
}

}  // namespace

NodeName take_node_name(const LauncherOptions& options, const std::string& run_id, const std::string& host,
                        const Environment& environment) {
  if (!options.node_id.empty()) return {options.node_id, {}};
  if (options.max_nodes == 1) return {host, {}};
  const auto folder = folder_of_locks(environment);
  if (!folder) return {host, {}};
  for (int number = 1; number <= kLaunchersPerHostMax; ++number) {
    UniqueFd lock =
        locked(*folder / fmt::format("{}.{}-{}.lock", folder_name_of(run_id), folder_name_of(host), number));
    if (lock) return {number == 1 ? host : fmt::format("{}-{}", host, number), std::move(lock)};
  }
  return {host, {}};
}

}  // namespace muster::launcher
