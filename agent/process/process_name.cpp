#include "agent/process/process_name.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/unique_fd.hpp"

namespace muster::agent {

namespace {

struct Area {
  char* begin = nullptr;
  std::size_t size = 0;
};

// The bytes that main's argv points to: fields 48 and 49 of /proc/self/stat, see proc(5). The name of the program, field 2,
// may have blanks in it and ends with the last ')'.
Area argument_area() {
  constexpr int kFirstAfterName = 3;
  constexpr int kArgumentsBegin = 48;
  char text[1024];
  const UniqueFd file(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : -1;
  if (size <= 0) return {};
  text[size] = '\0';
  const char* at = std::strrchr(text, ')');
  if (!at) return {};
  ++at;
  for (int field = kFirstAfterName; at && field < kArgumentsBegin; ++field) at = std::strchr(at + 1, ' ');
  if (!at) return {};
  char* rest = nullptr;
  const std::uintptr_t begin = std::strtoull(at, &rest, 10);
  const std::uintptr_t end = std::strtoull(rest, nullptr, 10);
  if (begin == 0 || end <= begin) return {};
  return {reinterpret_cast<char*>(begin), end - begin};
}

}  // namespace

// The short name comes last: who sees it may count on both.
void name_this_process(const char* name) {
  if (const Area area = argument_area(); area.size > 0) {
    std::memset(area.begin, 0, area.size);
    std::memcpy(area.begin, name, std::min(std::strlen(name), area.size - 1));
  }
  ::prctl(PR_SET_NAME, name);
}

}  // namespace muster::agent
