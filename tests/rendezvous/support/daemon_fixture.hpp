// A daemon on loopback and agents' links to it, all on one io_context that runs until what is expected is
// there.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "rendezvous/client/remote_link.hpp"
#include "rendezvous/protocol/handshake.hpp"
#include "rendezvous/server/daemon.hpp"

namespace muster::rendezvous {

/// One agent as the link's user: remembers what it was told.
struct TestAgent {
  std::unique_ptr<RemoteLink> link;
  std::vector<DaemonMessage> received;
  std::vector<std::string> notices;

  template <class T>
  int count() const {
    int n = 0;
    for (const auto& message : received) n += std::holds_alternative<T>(message) ? 1 : 0;
    return n;
  }
  template <class T>
  const T* last() const {
    for (auto at = received.rbegin(); at != received.rend(); ++at)
      if (const auto* message = std::get_if<T>(&*at)) return message;
    return nullptr;
  }
};

class DaemonTest : public testing::Test {
 protected:
  static constexpr Duration kPatience = std::chrono::seconds(20);

  void TearDown() override {
    agents_.clear();
    daemon_.reset();
    io_.restart();
    io_.run_for(std::chrono::milliseconds(50));
  }

  DaemonOptions options() {
    DaemonOptions options;
    options.listen = endpoint_;
    options.log = log_;
    return options;
  }

  void start_daemon() { start_daemon(options()); }
  void start_daemon(DaemonOptions options) {
    daemon_ = std::make_unique<Daemon>(io_, std::move(options));
    const auto bound = daemon_->listen();
    ASSERT_TRUE(bound) << bound.error().sentence();
    endpoint_ = *bound;  // the next daemon comes back there
  }
  void stop_daemon() { daemon_.reset(); }

  RemoteLinkOptions link_options(const std::string& node) {
    RemoteLinkOptions options;
    options.endpoint = endpoint_;
    options.job = "mnist";
    options.node = node;
    options.incarnation = node + "-1";
    options.policy = policy_;
    options.max_retry = std::chrono::milliseconds(100);
    return options;
  }

  NodeOffer offer(const RemoteLinkOptions& options) {
    NodeOffer offer;
    offer.node = options.node;
    offer.host = "host-" + options.node;
    offer.store_port = 29500;
    offer.local_workers = 2;
    offer.incarnation = options.incarnation;
    return offer;
  }

  /// Connects and joins.
  TestAgent& agent(const std::string& node) { return agent(link_options(node)); }
  TestAgent& agent(RemoteLinkOptions options) {
    auto& agent = connected_agent(options);
    agent.link->send(Join{offer(options)});
    return agent;
  }
  TestAgent& connected_agent(RemoteLinkOptions options) {
    auto& agent = *agents_.emplace_back(std::make_unique<TestAgent>());
    options.notice = [&agent](const std::string& line) { agent.notices.push_back(line); };
    agent.link = std::make_unique<RemoteLink>(io_, options);
    agent.link->on_message([&agent](const DaemonMessage& message) { agent.received.push_back(message); });
    agent.link->start();
    return agent;
  }

  /// False when it did not come true in time.
  bool run_until(const std::function<bool()>& condition, Duration patience = kPatience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      if (io_.stopped()) io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }

  void run_for(Duration duration) {
    run_until([] { return false; }, duration);
  }

  /// A peer that is not ours: says what it likes and hears all that comes until the daemon closes.
  std::string talk(const std::string& bytes) {
    boost::asio::ip::tcp::socket socket(io_);
    socket.connect({boost::asio::ip::make_address(endpoint_.host), endpoint_.port});
    std::string heard;
    bool over = false;
    boost::asio::async_write(socket, boost::asio::buffer(bytes), [](auto, std::size_t) {});
    boost::asio::async_read(socket, boost::asio::dynamic_buffer(heard),
                            [&](const boost::system::error_code&, std::size_t) { over = true; });
    EXPECT_TRUE(run_until([&] { return over; })) << "the daemon did not close";
    return heard;
  }

  std::string log() const { return log_text_.str(); }

  boost::asio::io_context io_;
  std::ostringstream log_text_;
  std::shared_ptr<spdlog::logger> log_ =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_text_));
  Endpoint endpoint_{"127.0.0.1", 0};
  JobPolicy policy_ = [] {
    JobPolicy policy;
    policy.min_nodes = policy.max_nodes = 2;
    return policy;
  }();
  std::unique_ptr<Daemon> daemon_;
  std::vector<std::unique_ptr<TestAgent>> agents_;
};

}  // namespace muster::rendezvous
