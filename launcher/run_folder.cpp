#include "launcher/run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <random>
#include <sstream>

#include "agent/logs/fields.hpp"
#include "base/endpoint.hpp"
#include "base/file_name.hpp"
#include "launcher/plan.hpp"
#include "launcher/temporary_places.hpp"
#include "launcher/text.hpp"

namespace muster::launcher {

namespace {

constexpr int kJobsPerFolderMax = 100;
const char* const kNext = "name another folder with --log-dir, or /dev/null";

Result<std::filesystem::path> made(const std::filesystem::path& folder) {
  return {boost::system::in_place_value, folder};
}

// It is printed in lines, and in lines read by other programs.
Result<void> check_name(const std::filesystem::path& folder) {
  const std::string name = folder.string();
  if (!has_control_characters(name)) return {};
  return Error{name, "a folder of logs with a line break or another control character in its name", kNext};
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
  if (const auto checked = check_name(pattern); !checked) return checked.error();
  if (!::mkdtemp(pattern.data())) return errno_error(pattern, errno, kNext);
  return made(pattern);
}

// In the first place where it can be made. Without any of them the job runs as well.
RunFolder make_somewhere(const std::string& run_id, const Environment& environment) {
  std::string unusable;
  for (const TemporaryPlace& place : temporary_places(environment)) {
    const auto fresh = make_temporary(run_id, place.folder);
    if (fresh)
      return {*fresh,
              {},
              unusable.empty() ? ""
                               : fmt::format("files cannot lie in {}: this job's logs are in {}", unusable,
                                             fresh->string())};
    unusable += (unusable.empty() ? "" : ", nor in ") + unusable_place(place, fresh.error().why);
  }
  return {{},
          {},
          fmt::format("files cannot lie in {}: no logs are kept, nor error files and status.json", unusable)};
}

// Where make_somewhere() would, as far as can be known without a try; empty: nowhere.
std::filesystem::path expected_somewhere(const std::string& run_id, const Environment& environment) {
  for (const TemporaryPlace& place : temporary_places(environment)) {
    std::error_code error;
    if (std::filesystem::is_directory(place.folder, error) &&
        ::access(place.folder.c_str(), W_OK | X_OK) == 0 && check_name(place.folder))
      return place.folder / fmt::format("muster-{}", ::getuid()) / (folder_name_of(run_id) + "-XXXXXX");
  }
  return {};
}

// --log-dir with its fields filled in, and with what it does not name added to it.
Result<std::filesystem::path> named_folder(const LauncherOptions& options, const std::string& run_id,
                                           const std::string& node, const Environment& environment) {
  bool names_job = false, names_node = false;
  std::string unknown;
  const auto field = [&](std::string_view name) -> std::optional<std::string> {
    names_job |= name == "job" || name == "node" || name == "host";
    names_node |= name == "node" || name == "host";
    if (name == "job") return folder_name_of(run_id);
    if (name == "node") return folder_name_of(node);
    if (name == "host") return folder_name_of(short_host_name());
    unknown = "{" + std::string(name) + "}";
    return std::nullopt;
  };
  const auto variable = [&](std::string_view name) {
    auto value = environment(std::string(name));
    if (!value) unknown = "${" + std::string(name) + "}";
    return value;
  };
  std::filesystem::path folder = agent::fill_fields(options.log_dir, field, variable);
  if (!unknown.empty())
    return Error{"--log-dir", fmt::format("'{}' is not known", unknown),
                 "fields are {job} {node} {host}, and ${NAME} for a variable that is set"};
  if (!names_job) folder /= folder_name_of(run_id);
  if (options.max_nodes > 1 && !names_node) folder /= folder_name_of(node);
  return made(folder);
}

Result<void> make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return errno_error(folder.string(), error.value(), kNext);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return errno_error(folder.string(), errno, kNext);
  return {};
}

// "process 4711", by the kernel's list of locks:  "1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF".
std::string holder_of(int folder) {
  struct stat info {};
  if (::fstat(folder, &info) != 0) return "another job";
  const std::string inode = fmt::format(":{}", info.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, strength, access, pid, file;
    if (!(words >> number >> kind >> strength >> access >> pid >> file)) continue;
    if (kind == "FLOCK" && file.ends_with(inode) && parse_integer(pid, 1, INT32_MAX)) return "process " + pid;
  }
  return "another job";
}

// The lock, none on file systems that have no such locks; an error whose `why` is the holder if somebody has it.
Result<UniqueFd> hold(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) return Error{folder.string(), holder_of(fd.get())};
  return UniqueFd();
}

}  // namespace

Result<std::filesystem::path> own_temporary_folder(const std::filesystem::path& temporary) {
  const auto ours = temporary / fmt::format("muster-{}", ::getuid());
  if (::mkdir(ours.c_str(), 0700) != 0 && errno != EEXIST) return errno_error(ours.string(), errno, kNext);
  if (!is_our_own_folder(ours)) return errno_error(ours.string(), EPERM, kNext);
  return made(ours);
}

std::string fresh_run_id() { return fmt::format("{:08x}", std::random_device{}()); }

std::string folder_name_of(const std::string& run_id) { return file_name_of(run_id); }

std::string run_id_of(const LauncherOptions& options) {
  if (!options.run_id.empty()) return options.run_id;
  return options.max_nodes > 1 ? "none" : fresh_run_id();
}

Result<std::filesystem::path> expected_run_folder(const LauncherOptions& options, const std::string& run_id,
                                                  const std::string& node, const Environment& environment) {
  if (options.log_dir == "/dev/null") return made("");
  if (options.log_dir.empty()) return made(expected_somewhere(run_id, environment));
  const auto named = named_folder(options, run_id, node, environment);
  if (!named) return named.error();
  // Workers may change their folder; the paths we print must stay true.
  std::error_code error;
  auto folder = std::filesystem::absolute(*named, error);
  if (error) return errno_error(named->string(), error.value(), kNext);
  if (const auto checked = check_name(folder); !checked) return checked.error();
  return made(folder.has_filename() ? folder : folder.parent_path());
}

Result<RunFolder> make_run_folder(const LauncherOptions& options, const std::string& run_id,
                                  const std::string& node, const Environment& environment) {
  if (options.log_dir == "/dev/null") return RunFolder{};
  if (options.log_dir.empty()) return make_somewhere(run_id, environment);
  const auto wanted = expected_run_folder(options, run_id, node, environment);
  if (!wanted) return wanted.error();
  std::string holder;
  for (int number = 1; number <= kJobsPerFolderMax; ++number) {
    std::filesystem::path path = *wanted;
    if (number > 1) path += fmt::format("-{}", number);
    if (const auto made = make_folder(path); !made) return made.error();
    auto held = hold(path);
    if (!held) {
      if (number == 1) holder = held.error().why;
      continue;
    }
    const std::string note = number == 1 ? ""
                                         : fmt::format("{} is in use by {}: this job's logs are in {}",
                                                       wanted->string(), holder, path.string());
    return RunFolder{path, std::move(*held), note};
  }
  return Error{wanted->string(),
               fmt::format("it and {} like it are in use, it by {}", kJobsPerFolderMax - 1, holder), kNext};
}

}  // namespace muster::launcher
