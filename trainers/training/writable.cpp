#include "trainers/training/writable.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace muster::trainers {
namespace {

[[noreturn]] void refuse(const char* option, const std::filesystem::path& path, const std::string& why,
                         const char* expected) {
  throw std::invalid_argument(fmt::format("{} {}: {}; expected {}", option, path.string(), why, expected));
}

/// A nameless file, which nothing is left of.
int error_of_a_file_in(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd >= 0) {
    ::close(fd);
    return 0;
  }
  // A file system without nameless files: it is found out later.
  return errno == EOPNOTSUPP || errno == EISDIR ? 0 : errno;
}

}  // namespace

void check_writable_folder(const std::filesystem::path& folder, const char* option) {
  constexpr const char* kExpected = "a folder that can be made and written";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) refuse(option, folder, std::strerror(error.value()), kExpected);
  if (const int why = error_of_a_file_in(folder)) refuse(option, folder, std::strerror(why), kExpected);
}

void check_writable_file(const std::filesystem::path& file, const char* option) {
  constexpr const char* kExpected = "a file in a folder that is there and can be written";
  std::error_code error;
  // Exporting puts a new file in the place of the old one, which would be the end of a device or a pipe.
  const auto status = std::filesystem::status(file, error);
  if (std::filesystem::is_directory(status)) refuse(option, file, std::strerror(EISDIR), kExpected);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    refuse(option, file, "is not a regular file", kExpected);
  const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  if (const int why = error_of_a_file_in(folder)) refuse(option, file, std::strerror(why), kExpected);
}

}  // namespace muster::trainers
