// The channel under TLS: who is heard, who is believed, what can be read on the way.
#include "rendezvous/protocol/tls.hpp"

#include <gmock/gmock.h>

#include <boost/asio/ip/tcp.hpp>

#include "rendezvous/client/operator_call.hpp"
#include "tests/rendezvous/support/certificates.hpp"
#include "tests/rendezvous/support/daemon_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;
using Tcp = boost::asio::ip::tcp;

class TlsTest : public DaemonTest {
 protected:
  static std::shared_ptr<Tls> loaded(const TlsFiles& files, TlsSide side) {
    auto tls = load_tls(files, side);
    EXPECT_TRUE(tls) << tls.error().sentence();
    return tls ? tls->tls : nullptr;
  }

  DaemonOptions secured(TlsFiles files) {
    auto secured = options();
    secured.tls = loaded(files, TlsSide::daemon);
    return secured;
  }
  /// One that asks its peers for nothing.
  DaemonOptions secured() {
    auto files = own_;
    files.authority.clear();
    return secured(files);
  }

  RemoteLinkOptions secured_link(const std::string& node, const TlsFiles& files) {
    auto options = link_options(node);
    options.tls = loaded(files, TlsSide::peer);
    return options;
  }

  /// Why the agent gives up after a second.
  std::string why_not(RemoteLinkOptions options) {
    options.join_deadline = std::chrono::seconds(1);
    auto& stranger = agent(std::move(options));
    EXPECT_TRUE(run_until([&] { return stranger.last<JobEnded>() || stranger.last<Refused>(); }));
    if (const auto* refused = stranger.last<Refused>()) return refused->reason;
    const auto* ended = stranger.last<JobEnded>();
    return ended ? ended->outcome.reason : "";
  }

  bool two_meet(const RemoteLinkOptions& first, const RemoteLinkOptions& second) {
    auto& a = agent(first);
    auto& b = agent(second);
    return run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); });
  }

  muster::test::TemporaryFolder folder_;
  Authority authority_{folder_ / "one"};
  Authority other_{folder_ / "other"};
  TlsFiles own_ = authority_.sign("daemon", "IP:127.0.0.1");
};

// Passes bytes on and keeps what it has seen.
class Wire {
 public:
  Wire(boost::asio::io_context& io, const Endpoint& to)
      : io_(io), to_(to), acceptor_(io, Tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) {
    accept();
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  const std::string& seen() const { return seen_; }

 private:
  using Socket = std::shared_ptr<Tcp::socket>;

  void accept() {
    auto near = std::make_shared<Tcp::socket>(io_);
    acceptor_.async_accept(*near, [this, near](const boost::system::error_code& error) {
      if (error) return;
      auto far = std::make_shared<Tcp::socket>(io_);
      far->connect({boost::asio::ip::make_address(to_.host), to_.port});
      pass_on(near, far);
      pass_on(far, near);
      accept();
    });
  }

  void pass_on(Socket from, Socket to) {
    auto buffer = std::make_shared<std::array<char, 4096>>();
    from->async_read_some(boost::asio::buffer(*buffer),
                          [this, from, to, buffer](const auto& error, std::size_t size) {
                            boost::system::error_code ignored;
                            if (error) return void(to->shutdown(Tcp::socket::shutdown_send, ignored));
                            seen_.append(buffer->data(), size);
                            boost::asio::write(*to, boost::asio::buffer(buffer->data(), size), ignored);
                            pass_on(from, to);
                          });
  }

  boost::asio::io_context& io_;
  Endpoint to_;
  Tcp::acceptor acceptor_;
  std::string seen_;
};

TEST_F(TlsTest, N3_NothingOfAJobCanBeReadOnTheWay) {
  for (const bool secure : {false, true}) {
    start_daemon(secure ? secured() : options());
    const auto direct = endpoint_;
    Wire wire(io_, direct);
    endpoint_.port = wire.port();
    const auto files = authority_.authority_only();
    ASSERT_TRUE(secure ? two_meet(secured_link("node-a", files), secured_link("node-b", files))
                       : two_meet(link_options("node-a"), link_options("node-b")));
    EXPECT_EQ(wire.seen().find("mnist") != std::string::npos, !secure);
    EXPECT_EQ(wire.seen().find("node-a") != std::string::npos, !secure);
    agents_.clear();
    stop_daemon();
    endpoint_.port = 0;
  }
}

TEST_F(TlsTest, N1_WithoutACertificateNobodyIsHeard) {
  start_daemon(secured(own_));
  EXPECT_THAT(why_not(secured_link("a", authority_.authority_only())), HasSubstr("certificate required"));
  EXPECT_TRUE(daemon_->jobs().empty());
  EXPECT_THAT(log(), HasSubstr("refused 127.0.0.1:"));
  EXPECT_THAT(log(), HasSubstr("peer did not return a certificate"));
  auto foreign = other_.sign("node", "IP:127.0.0.1");
  foreign.authority = own_.authority;
  EXPECT_THAT(why_not(secured_link("a", foreign)), HasSubstr("unknown ca"));
  EXPECT_TRUE(daemon_->jobs().empty());
  const auto good = authority_.sign("node", "DNS:any");
  EXPECT_TRUE(two_meet(secured_link("a", good), secured_link("b", good)));
}

TEST_F(TlsTest, N1_ATokenIsAskedForAllTheSame) {
  auto with_token = secured();
  with_token.token = Token("0123456789abcdef");
  start_daemon(std::move(with_token));
  EXPECT_THAT(why_not(secured_link("a", authority_.authority_only())), HasSubstr("token"));
}

TEST_F(TlsTest, ADaemonIsBelievedOnlyWithItsNameAndItsAuthority) {
  auto elsewhere = authority_.sign("elsewhere", "IP:10.9.8.7");
  elsewhere.authority.clear();
  start_daemon(secured(elsewhere));
  EXPECT_THAT(why_not(secured_link("a", authority_.authority_only())),
              HasSubstr("the daemon's certificate names 10.9.8.7, and 127.0.0.1 was wanted"));
  stop_daemon();
  start_daemon(secured());
  EXPECT_THAT(why_not(secured_link("a", other_.authority_only())),
              HasSubstr("the daemon's certificate is not one of the named authority (tls_ca, --tls-ca)"));
  EXPECT_TRUE(daemon_->jobs().empty());
}

// Field report: a certificate for another address was tried for ten minutes.
TEST_F(TlsTest, D9_WhatNoWaitingMendsIsFinalAtOnce) {
  start_daemon(secured());
  auto& a = agent(secured_link("a", other_.authority_only()));
  ASSERT_TRUE(run_until([&] { return a.last<JobEnded>() != nullptr; }, std::chrono::seconds(5)));
  EXPECT_EQ(a.last<JobEnded>()->outcome.kind, OutcomeKind::rendezvous_failed);
}

TEST_F(TlsTest, D9_ANodeThatWasInWaitsForADaemonThatIsBeingMended) {
  start_daemon(secured());
  auto& a = agent(secured_link("a", authority_.authority_only()));
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  stop_daemon();
  auto elsewhere = authority_.sign("elsewhere", "IP:10.9.8.7");
  elsewhere.authority.clear();
  start_daemon(secured(elsewhere));
  ASSERT_TRUE(run_until([&] {
    return log().find("the TLS handshake failed") != std::string::npos ||
           log().find("alert") != std::string::npos;
  }));
  stop_daemon();
  start_daemon(secured());
  EXPECT_TRUE(run_until([&] { return daemon_->sessions() > 0 && !daemon_->jobs().empty(); }));
  EXPECT_EQ(a.last<JobEnded>(), nullptr);
}

TEST_F(TlsTest, D9_PlainAndTlsAreToldApart) {
  start_daemon(secured());
  EXPECT_THAT(why_not(link_options("a")), HasSubstr("this rendezvous speaks TLS"));
  EXPECT_THAT(log(), HasSubstr("the TLS handshake failed"));
  stop_daemon();
  start_daemon();
  EXPECT_THAT(why_not(secured_link("a", authority_.authority_only())), HasSubstr("it may not speak TLS"));
  EXPECT_THAT(log(), HasSubstr("it speaks TLS"));
}

TEST_F(TlsTest, AHandshakeThatIsNotFinishedIsEnded) {
  auto impatient = secured();
  impatient.handshake_timeout = milliseconds(200);
  start_daemon(std::move(impatient));
  EXPECT_EQ(talk(""), "");
  EXPECT_EQ(talk(std::string("\x16\x03\x01\x02\x00\x01", 6)), "") << "the beginning of a handshake";
  EXPECT_TRUE(run_until([&] { return daemon_->sessions() == 0; }));
}

TEST_F(TlsTest, AFloodOfSilentConnectionsShutsNobodyOut) {
  auto small = secured();
  small.max_half_open = 8;
  small.half_open_patience = milliseconds(50);
  start_daemon(std::move(small));
  std::vector<Tcp::socket> silent;
  for (int i = 0; i < 40; ++i)
    silent.emplace_back(io_).connect({boost::asio::ip::make_address(endpoint_.host), endpoint_.port});
  const auto files = authority_.authority_only();
  EXPECT_TRUE(two_meet(secured_link("a", files), secured_link("b", files)));
}

TEST_F(TlsTest, APeerThatVanishesIsNoticedAsWithoutTls) {
  policy_.min_nodes = 1;
  policy_.closed_grace = milliseconds(50);
  start_daemon(secured());
  const auto files = authority_.authority_only();
  ASSERT_TRUE(two_meet(secured_link("a", files), secured_link("b", files)));
  agents_.back()->link.reset();
  EXPECT_TRUE(run_until([&] { return agents_.front()->last<StopWorkers>() != nullptr; }));
}

TEST(LoadTls, WhatIsMissingOrWrongIsNamed) {
  const muster::test::TemporaryFolder folder;
  Authority authority(folder / "ca");
  const auto good = authority.sign("a", "DNS:a");
  const auto error_of = [](const TlsFiles& files, TlsSide side) {
    const auto tls = load_tls(files, side);
    return tls ? "" : tls.error().sentence();
  };
  EXPECT_EQ(error_of({}, TlsSide::daemon), "") << "no TLS";
  EXPECT_EQ(error_of(good, TlsSide::daemon), "");
  EXPECT_THAT(error_of({good.certificate, "", ""}, TlsSide::daemon),
              HasSubstr("a certificate without its key"));
  EXPECT_THAT(error_of({"", "", good.authority}, TlsSide::daemon), HasSubstr("no certificate to show"));
  EXPECT_THAT(error_of({good.certificate, good.key, ""}, TlsSide::peer), HasSubstr("tls_ca"));
  EXPECT_THAT(error_of({"", "", "/nonexistent.pem"}, TlsSide::peer), HasSubstr("/nonexistent.pem"));
  EXPECT_THAT(error_of({good.certificate, authority.sign("b", "").key, ""}, TlsSide::daemon),
              HasSubstr("b.key"));
}

}  // namespace
}  // namespace muster::rendezvous
