// A descriptor that others share, written without blocking and without changing its flags.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "base/unique_fd.hpp"

namespace muster::agent {

/// See console.hpp for the reasons.
class ConsoleFd {
 public:
  /// `fd` stays the caller's.
  explicit ConsoleFd(int fd);

  /// As write(2): bytes written, or -1 with errno (EAGAIN: wait for ready_fd). Never blocks on a pipe, a
  /// terminal or a socket.
  ssize_t write_some(std::string_view bytes) const;

  /// A descriptor of our own that is *readable* when the console is writable; -1 where nothing ever has to be
  /// waited for (a file).
  int ready_fd() const { return ready_.get(); }

 private:
  enum class Way { plain, socket, polled };

  int fd_;
  Way way_ = Way::plain;
  UniqueFd own_;    // a second open file description of the same pipe or terminal
  UniqueFd ready_;  // an epoll set with just that descriptor in it
};

/// True if both descriptors lead to the same open pipe, terminal or file.
bool same_file(int first_fd, int second_fd);

}  // namespace muster::agent
