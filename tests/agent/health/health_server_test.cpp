#include "agent/health/health_server.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <fstream>
#include <thread>

#include "tests/support/temporary_folder.hpp"

namespace muster::agent {
namespace {

namespace asio = boost::asio;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HealthServerTest : public ::testing::Test {
 protected:
  ~HealthServerTest() override {
    asio::post(io_, [this] { server_->stop(); });
    work_.reset();
    thread_.join();
  }

  void listen(const std::string& where) {
    auto listens = HealthServer::listen(io_, where, [](std::string_view target) {
      return HealthAnswer{target == "/health" ? 200 : 503, std::string(target) + "\n"};
    });
    ASSERT_TRUE(listens) << listens.error().sentence();
    server_ = std::move(*listens);
    thread_ = std::thread([this] { io_.run(); });
  }

  template <class Protocol>
  static std::string ask(const typename Protocol::endpoint& endpoint, const std::string& request) {
    asio::io_context io;
    typename Protocol::socket socket(io);
    socket.connect(endpoint);
    asio::write(socket, asio::buffer(request));
    std::string answer;
    boost::system::error_code end;
    asio::read(socket, asio::dynamic_buffer(answer), end);
    return answer;
  }
  asio::ip::tcp::endpoint port() const {
    const std::string& text = server_->address();  // http://127.0.0.1:PORT/health
    return {asio::ip::make_address("127.0.0.1"),
            static_cast<std::uint16_t>(std::stoi(text.substr(text.rfind(':') + 1)))};
  }

  test::TemporaryFolder folder_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::unique_ptr<HealthServer> server_;
  std::thread thread_;
};

const std::string get = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

TEST_F(HealthServerTest, L2_AnswersAtAPort) {
  listen("127.0.0.1:0");
  EXPECT_THAT(server_->address(), StartsWith("http://127.0.0.1:"));
  const std::string answer = ask<asio::ip::tcp>(port(), get);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("application/json"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\n/health\n"));
  EXPECT_THAT(ask<asio::ip::tcp>(port(), "GET /sick HTTP/1.0\r\n\r\n"),
              HasSubstr(" 503 Service Unavailable"));
  EXPECT_THAT(ask<asio::ip::tcp>(port(), "POST /health HTTP/1.0\r\n\r\n"), HasSubstr(" 405 "));
}

TEST_F(HealthServerTest, L2_AnswersAtAUnixSocketAndRemovesIt) {
  const std::string path = folder_ / "health";
  listen("unix:" + path);
  EXPECT_THAT(ask<asio::local::stream_protocol>(path, get), StartsWith("HTTP/1.1 200 OK\r\n"));
  const auto again = HealthServer::listen(io_, "unix:" + path, {});
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().sentence(), HasSubstr("somebody listens there"));
  EXPECT_EQ(::access(path.c_str(), F_OK), 0) << "the one who listens keeps his";
}

TEST_F(HealthServerTest, ASocketOfADeadProcessIsReplaced) {
  const std::string path = folder_ / "health";
  {
    asio::io_context io;
    asio::local::stream_protocol::acceptor left(io, asio::local::stream_protocol::endpoint(path));
  }
  ASSERT_EQ(::access(path.c_str(), F_OK), 0);
  listen("unix:" + path);
  EXPECT_THAT(ask<asio::local::stream_protocol>(path, get), HasSubstr("200 OK"));
}

TEST(HealthServerAddress, ATakenPortAndOtherMistakesAreNamed) {
  asio::io_context io;
  asio::ip::tcp::acceptor taken(io, {asio::ip::make_address("127.0.0.1"), 0});
  const std::string where = "127.0.0.1:" + std::to_string(taken.local_endpoint().port());
  const auto refused = HealthServer::listen(io, where, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().sentence(),
              StartsWith("--health " + where + ": Address already in use (EADDRINUSE)"));
  const test::TemporaryFolder folder;
  std::ofstream(folder / "file") << "mine";
  EXPECT_FALSE(HealthServer::listen(io, "unix:" + (folder / "file"), {}));
  EXPECT_EQ(::access((folder / "file").c_str(), F_OK), 0) << "a file that is no socket is left alone";
  EXPECT_FALSE(HealthServer::listen(io, "unix:", {}));
  EXPECT_FALSE(HealthServer::listen(io, "unix:/" + std::string(200, 'x'), {}));
}

}  // namespace
}  // namespace muster::agent
