// A store server on its own thread, and a raw client, for tests over loopback.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rendezvous/store/client_socket.hpp"
#include "rendezvous/store/server.hpp"
#include "tests/rendezvous/store/hex.hpp"

namespace muster::rendezvous {

inline constexpr std::chrono::seconds patience{20};

class RunningStore {
 public:
  explicit RunningStore(StoreLimits limits = {}, const std::string& address = "127.0.0.1",
                        std::uint16_t port = 0) {
    server_.emplace(io_.get_executor(), open_listener(io_.get_executor(), address, port).value(), limits);
    server_->on_notice([this](const std::string& notice) {
      const std::lock_guard lock(mutex_);
      notices_.push_back(notice);
    });
    server_->start().value();
    port_ = server_->local_endpoint().port();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~RunningStore() {
    boost::asio::post(io_, [this] { server_.reset(); });
    thread_.join();
  }

  std::uint16_t port() const { return port_; }
  Endpoint endpoint() const { return {"127.0.0.1", port_}; }

  /// On the server's thread.
  template <class F>
  auto ask(F question) {
    std::promise<decltype(question(*server_))> promise;
    boost::asio::post(io_, [&] { promise.set_value(question(*server_)); });
    return promise.get_future().get();
  }
  StoreCounters counters() {
    return ask([](StoreServer& server) { return server.counters(); });
  }
  /// Fails the test if it does not come true.
  void await(const std::string& what, const std::function<bool(const StoreCounters&)>& condition) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!condition(counters()))
      if (std::chrono::steady_clock::now() > end) return (void)(ADD_FAILURE() << "never came true: " << what);
  }
  std::vector<std::string> notices() {
    const std::lock_guard lock(mutex_);
    return notices_;
  }

 private:
  boost::asio::io_context io_{1};
  std::optional<StoreServer> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<std::string> notices_;
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port, const std::string& host = "127.0.0.1")
      : socket_(StoreSocket::connect({host, port}, deadline()).value()) {}

  void send(const std::string& bytes) { socket_.send_all(bytes, deadline()).value(); }
  void send_hex(const std::string& hex) { send(from_hex(hex)); }
  /// Sends what a server may refuse in the middle.
  void send_anyhow(const std::string& bytes) { (void)socket_.send_all(bytes, deadline()); }

  std::string receive(std::size_t size) {
    while (buffer_.size() < size)
      if (socket_.receive(buffer_, deadline()).value() != StoreSocket::Received::some) break;
    const auto taken = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return taken;
  }
  void expect_hex(const std::string& hex) { EXPECT_EQ(to_hex(receive(from_hex(hex).size())), hex); }
  /// The server closes, having sent nothing more.
  void expect_closed() {
    EXPECT_EQ(socket_.receive(buffer_, deadline()).value(), StoreSocket::Received::closed);
    EXPECT_EQ(to_hex(buffer_), "");
  }
  void close() { socket_.close(); }

 private:
  static StoreSocket::TimePoint deadline() { return std::chrono::steady_clock::now() + patience; }
  StoreSocket socket_;
  std::string buffer_;
};

}  // namespace muster::rendezvous
