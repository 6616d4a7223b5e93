// What the kernel alone takes: reads whatever comes, answers with as many bytes as it is told, and looks at nothing.
// No store can serve the same clients faster.   store_floor REPLY_BYTES   prints its port, serves until its input ends
#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr int events_max = 256;
constexpr std::size_t pong_bytes = 4;  ///< the answer to a client's greeting is the end of the greeting

int listen_on_loopback() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, generic, sizeof address) != 0 || ::listen(listener, 4096) != 0 ||
      ::getsockname(listener, generic, &length) != 0)
    std::exit(1);
  std::cout << ntohs(address.sin_port) << std::endl;
  return listener;
}

void watch(int epoll, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: store_floor REPLY_BYTES\n", 2;
  const std::string reply(std::strtoul(argv[1], nullptr, 10), '\0');
  const int listener = listen_on_loopback();
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, listener);
  watch(epoll, STDIN_FILENO);
  std::vector<bool> greeted;
  std::string bytes(128 << 10, '\0');
  epoll_event events[events_max];
  for (;;) {
    const int count = ::epoll_wait(epoll, events, events_max, -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == STDIN_FILENO) return 0;
      if (fd == listener) {
        const int client = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client < 0) continue;
        greeted.resize(std::max(greeted.size(), static_cast<std::size_t>(client) + 1));
        greeted[client] = false;
        watch(epoll, client);
        continue;
      }
      const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
      if (got <= 0) {
        ::close(fd);
        continue;
      }
      const bool asks = greeted[fd];
      greeted[fd] = true;
      if (asks)
        ::send(fd, reply.data(), reply.size(), MSG_NOSIGNAL);
      else
        ::send(fd, bytes.data() + got - pong_bytes, pong_bytes, MSG_NOSIGNAL);
    }
  }
}
