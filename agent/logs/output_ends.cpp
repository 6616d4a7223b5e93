#include "agent/logs/output_ends.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

namespace muster::agent {

namespace {

winsize size_of_our_terminal() {
  winsize size{};
  for (const int fd : {STDERR_FILENO, STDOUT_FILENO, STDIN_FILENO})
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size;
  size.ws_row = 24;
  size.ws_col = 80;
  return size;
}

// No "\n" becomes "\r\n", and nothing is echoed into what we read.
bool make_transparent(int terminal) {
  termios settings{};
  if (::tcgetattr(terminal, &settings) != 0) return false;
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL);
  const winsize size = size_of_our_terminal();
  return ::tcsetattr(terminal, TCSANOW, &settings) == 0 && ::ioctl(terminal, TIOCSWINSZ, &size) == 0;
}

}  // namespace

Result<OutputEnds> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe for a worker's output", errno);
  OutputEnds pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  // Only our end: the worker's end is another description and stays blocking.
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return errno_error("pipe for a worker's output", errno);
  return pipe;
}

Result<OutputEnds> make_terminal() {
  const char* const what = "terminal for a worker's output (--pty)";
  OutputEnds ends;
  ends.reader.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (!ends.reader) return errno_error(what, errno);
  char name[64];
  if (::grantpt(ends.reader.get()) != 0 || ::unlockpt(ends.reader.get()) != 0 ||
      ::ptsname_r(ends.reader.get(), name, sizeof name) != 0)
    return errno_error(what, errno);
  ends.worker.reset(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!ends.worker || !make_transparent(ends.worker.get())) return errno_error(what, errno);
  return ends;
}

}  // namespace muster::agent
