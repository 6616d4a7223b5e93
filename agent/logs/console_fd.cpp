#include "agent/logs/console_fd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>

namespace muster::agent {

ConsoleFd::ConsoleFd(int fd) : fd_(fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return;  // closed: each write will say so
  if (S_ISSOCK(info.st_mode)) {
    way_ = Way::socket;
  } else if (S_ISFIFO(info.st_mode) || (S_ISCHR(info.st_mode) && ::isatty(fd) == 1)) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    own_.reset(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own_)
      fd_ = own_.get();
    else
      way_ = Way::polled;
  } else {
    return;
  }
  ready_.reset(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLOUT;
  if (ready_ && ::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, fd_, &event) != 0) ready_.reset();
}

ssize_t ConsoleFd::write_some(std::string_view bytes) const {
  if (way_ == Way::socket) return ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (way_ == Way::plain) return ::write(fd_, bytes.data(), bytes.size());
  pollfd ready{fd_, POLLOUT, 0};
  const int count = ::poll(&ready, 1, 0);
  if (count == 0) errno = EAGAIN;
  if (count <= 0) return -1;
  return ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
}

bool same_file(int first_fd, int second_fd) {
  struct stat first {};
  struct stat second {};
  if (::fstat(first_fd, &first) != 0 || ::fstat(second_fd, &second) != 0) return false;
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino && first.st_rdev == second.st_rdev;
}

}  // namespace muster::agent
