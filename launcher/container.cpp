#include "launcher/container.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

namespace muster::launcher {

namespace {

// Everything that has ended is reaped: orphans come to the first process.
bool has_ended(pid_t daemon) {
  bool ended = false;
  for (;;) {
    const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
    if (pid <= 0) return ended || (pid < 0 && errno == ECHILD);
    ended = ended || pid == daemon;
  }
}

}  // namespace

void outstay(pid_t daemon, int stop_fd, const std::function<void(const std::string&)>& say) {
  if (::getpid() != 1 || daemon <= 0) return;
  boost::asio::io_context io;
  boost::asio::signal_set children(io, SIGCHLD);
  if (has_ended(daemon)) return;
  say(fmt::format(
      "the rendezvous (musterd, pid {}) would end with this container: waiting until its other nodes "
      "are done; a signal ends it now",
      daemon));
  boost::asio::posix::stream_descriptor stop(io, stop_fd);
  bool over = false;
  stop.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                  [&](const boost::system::error_code&) { over = true; });
  while (!over) {
    children.async_wait([&](const boost::system::error_code& error, int) {
      if (error || has_ended(daemon)) over = true;
    });
    io.restart();
    io.run_one();
  }
  stop.release();
}

}  // namespace muster::launcher
