#include "launcher/small_file.hpp"

#include <cerrno>
#include <fstream>

namespace muster::launcher {

Result<std::string> read_small_file(const std::string& path, const char* meant) {
  constexpr std::size_t kMaxBytes = 1 << 20;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && !file.good()) return errno_error(path, errno ? errno : EIO);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxBytes) return Error{path, "longer than 1 MiB", meant};
  return {boost::system::in_place_value, std::move(text)};
}

}  // namespace muster::launcher
