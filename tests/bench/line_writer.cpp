// The worker of the log benchmark: LINES lines of BYTES bytes on stdout, as fast as they are taken.
//   line_writer LINES BYTES
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

bool write_all(const std::string& block) {
  for (std::size_t done = 0; done < block.size();) {
    const ssize_t written = ::write(STDOUT_FILENO, block.data() + done, block.size() - done);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: line_writer LINES BYTES\n", stderr);
    return 2;
  }
  const long lines = std::strtol(argv[1], nullptr, 10);
  const auto bytes = static_cast<std::size_t>(std::strtol(argv[2], nullptr, 10));
  const char* rank = std::getenv("RANK");
  const std::string name = std::string("rank ") + (rank ? rank : "-") + " line ";
  std::string block;
  for (long line = 0; line < lines; ++line) {
    std::string text = name + std::to_string(line) + " ";
    text.resize(bytes - 1, 'x');
    block.append(text).push_back('\n');
    if ((block.size() + bytes > 64 * 1024 || line + 1 == lines)) {
      if (!write_all(block)) return 1;
      block.clear();
    }
  }
  return 0;
}
