#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "agent/report/report.hpp"
#include "base/unique_fd.hpp"

namespace muster::agent {

namespace {

// 0 or an errno.
int write_and_sync(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

Result<void> write_status_file(const std::filesystem::path& path, const std::string& text) {
  std::string partial = path.string() + ".XXXXXX";
  UniqueFd fd(::mkostemp(partial.data(), O_CLOEXEC));
  if (!fd) return errno_error(partial, errno);
  int error = write_and_sync(fd.get(), text);
  if (error == 0 && ::fchmod(fd.get(), 0644) != 0) error = errno;
  if (::close(fd.release()) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(partial.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  if (::unlink(partial.c_str()) != 0 && errno != ENOENT)
    return errno_error(path.string(), error, "a part of it was left in " + partial);
  return errno_error(path.string(), error);
}

}  // namespace muster::agent
