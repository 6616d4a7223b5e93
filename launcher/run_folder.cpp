#include "launcher/run_folder.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <random>

namespace muster::launcher {

namespace {

const char* const kNext = "name another folder with --log-dir, or /dev/null";

Result<std::filesystem::path> made(const std::filesystem::path& folder) {
  return {boost::system::in_place_value, folder};
}

bool is_our_own_folder(const std::filesystem::path& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::getuid();
}

Result<std::filesystem::path> make_temporary(const std::string& run_id,
                                             const std::filesystem::path& temporary) {
  const auto ours = own_temporary_folder(temporary);
  if (!ours && ours.error().error_number != EPERM) return ours.error();
  std::string pattern =
      ours ? ours->string() + "/" : (temporary / fmt::format("muster-{}-", ::getuid())).string();
  pattern += folder_name_of(run_id) + "-XXXXXX";
  if (!::mkdtemp(pattern.data())) return errno_error(pattern, errno, kNext);
  return made(pattern);
}

}  // namespace

Result<std::filesystem::path> own_temporary_folder(const std::filesystem::path& temporary) {
  const auto ours = temporary / fmt::format("muster-{}", ::getuid());
  if (::mkdir(ours.c_str(), 0700) != 0 && errno != EEXIST) return errno_error(ours.string(), errno, kNext);
  if (!is_our_own_folder(ours)) return errno_error(ours.string(), EPERM, kNext);
  return made(ours);
}

std::string fresh_run_id() { return fmt::format("{:08x}", std::random_device{}()); }

std::string folder_name_of(const std::string& run_id) {
  std::string name = run_id;
  for (char& byte : name) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(byte)) || byte == '.' || byte == '_' || byte == '-';
    if (!plain) byte = '_';
  }
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return name;
}

std::string run_id_of(const LauncherOptions& options) {
  if (!options.run_id.empty()) return options.run_id;
  return options.max_nodes > 1 ? "none" : fresh_run_id();
}

Result<std::filesystem::path> make_run_folder(const LauncherOptions& options, const std::string& run_id,
                                              const std::string& node, const Environment& environment) {
  if (options.log_dir == "/dev/null") return made("");
  if (options.log_dir.empty()) return make_temporary(run_id, environment("TMPDIR").value_or("/tmp"));
  std::error_code error;
  // Workers may change their folder; the paths we print must stay true.
  const auto base = std::filesystem::absolute(options.log_dir, error);
  auto folder = base / folder_name_of(run_id);
  if (options.max_nodes > 1) folder /= folder_name_of(node);
  if (!error) std::filesystem::create_directories(folder, error);
  if (error) return errno_error(folder.string(), error.value(), kNext);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return errno_error(folder.string(), errno, kNext);
  return made(folder);
}

}  // namespace muster::launcher
