// One worker store alone in a process, for benchmarks: prints its port, serves until standard input ends.
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <iostream>

#include "rendezvous/store/server.hpp"

int main() {
  using namespace muster::rendezvous;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  boost::asio::io_context io{1};
  auto listener = open_listener(io.get_executor(), "127.0.0.1", std::uint16_t{0});
  if (!listener) return std::cerr << listener.error().sentence() << "\n", 1;
  StoreServer server(io.get_executor(), std::move(*listener));
  server.on_notice([](const std::string& notice) { std::cerr << notice << "\n"; });
  if (const auto started = server.start(); !started)
    return std::cerr << started.error().sentence() << "\n", 1;
  std::cout << server.local_endpoint().port() << std::endl;
  boost::asio::posix::stream_descriptor input(io, ::dup(STDIN_FILENO));
  input.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   [&](boost::system::error_code) { io.stop(); });
  io.run();
}
