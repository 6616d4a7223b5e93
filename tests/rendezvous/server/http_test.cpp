#include "rendezvous/server/http.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "rendezvous/operator_tables.hpp"
#include "tests/rendezvous/support/daemon_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::rendezvous {
namespace {

class HttpTest : public DaemonTest {
 protected:
  void start(std::optional<Token> token = std::nullopt) {
    auto settings = options();
    settings.token = std::move(token);
    start(std::move(settings));
  }
  void start(DaemonOptions settings) {
    start_daemon(settings);
    http_ = std::make_unique<HttpServer>(io_, *daemon_);
    const auto bound = http_->listen({"127.0.0.1", 0});
    ASSERT_TRUE(bound);
    channel_ = std::exchange(endpoint_, *bound);  // talk() goes to the HTTP port
  }
  void TearDown() override {
    http_.reset();
    DaemonTest::TearDown();
  }
  TestAgent& agent_of(const std::string& job, std::optional<Token> token = std::nullopt) {
    auto options = link_options("n1");
    options.endpoint = channel_;
    options.job = job;
    options.token = std::move(token);
    return agent(options);
  }
  std::string get(const std::string& target, const std::string& headers = "") {
    return talk("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + "\r\n");
  }
  static nlohmann::json body(const std::string& response) {
    return nlohmann::json::parse(response.substr(response.find("\r\n\r\n") + 4));
  }

  std::unique_ptr<HttpServer> http_;
  Endpoint channel_;
};

TEST_F(HttpTest, HealthzIsOk) {
  start();
  EXPECT_NE(get("/healthz").find("200 OK"), std::string::npos);
}

// Field report: 1,500 half-sent requests shut everybody out for 10 s.
TEST_F(HttpTest, WhoSaysNothingMakesRoomForWhoDoes) {
  start();
  std::vector<boost::asio::ip::tcp::socket> silent;
  for (int i = 0; i < 300; ++i) {
    silent.emplace_back(io_).connect({boost::asio::ip::make_address(endpoint_.host), endpoint_.port});
    silent.back().send(boost::asio::buffer("GET /healthz HTTP/1.1\r\nHost", 27));
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(get("/healthz").find("200 OK"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, HttpPages::kIdleLimit / 2);
}

TEST_F(HttpTest, AJournalThatIsLostIsTold) {
  const test::TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "journal.new");
  auto settings = options();
  settings.state_dir = folder.path();
  start(settings);
  EXPECT_NE(get("/healthz").find("200 OK"), std::string::npos) << "a new start would not help";
  EXPECT_NE(get("/healthz").find("ok, but the journal is lost: "), std::string::npos) << get("/healthz");
  EXPECT_NE(get("/metrics").find("muster_journal_lost 1"), std::string::npos);
}

TEST_F(HttpTest, AJobThatIsOverShowsItsNodesAsEndedAndThenAsLeft) {
  policy_.min_nodes = policy_.max_nodes = 1;
  start();
  auto& a = agent_of("mnist");
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() != nullptr; }));
  a.link->send(WorkersSucceeded{1});
  ASSERT_TRUE(run_until([&] { return a.last<JobEnded>() != nullptr; }));
  EXPECT_EQ(body(get("/v1/jobs/mnist"))["members"][0]["state"], "ended");
  a.link.reset();
  ASSERT_TRUE(run_until([&] { return daemon_->sessions() == 0; }));
  EXPECT_EQ(body(get("/v1/jobs/mnist"))["members"][0]["state"], "left");
}

TEST_F(HttpTest, SparesAreToldApart) {
  policy_.min_nodes = policy_.max_nodes = 1;
  start();
  auto& a = agent_of("mnist");
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() != nullptr; }));
  auto options = link_options("n2");
  options.endpoint = channel_;
  auto& b = agent(options);
  ASSERT_TRUE(run_until([&] { return b.last<Waiting>() != nullptr; }));
  const auto job = body(get("/v1/jobs/mnist"));
  EXPECT_EQ(job["nodes_here"], 2);
  EXPECT_EQ(job["spares"], 1);
  const auto table = operator_text(OperatorVerb::status, {{"jobs", {job}}});
  EXPECT_NE(table.find("  1 of 1 +1 spare  "), std::string::npos) << table;
}

TEST_F(HttpTest, JobsShowPhaseReasonNodesAndEvents) {
  start();
  auto& a = agent_of("a/b job");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  const auto jobs = body(get("/v1/jobs"))["jobs"];
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]["job"], "a/b job");
  EXPECT_EQ(jobs[0]["phase"], "gathering");
  const auto job = body(get("/v1/jobs/a%2Fb%20job"));
  EXPECT_NE(job["reason"].get<std::string>().find("waiting for 1"), std::string::npos) << job["reason"];
  EXPECT_EQ(job["members"][0]["node"], "n1");
  EXPECT_EQ(job["members"][0]["state"], "waiting");
  EXPECT_EQ(job["policy"]["maximum of nodes"], "2");
  EXPECT_NE(job["events"][0]["text"].get<std::string>().find("node n1"), std::string::npos);
}

TEST_F(HttpTest, ARoundShowsItsRanks) {
  policy_.min_nodes = policy_.max_nodes = 1;
  start();
  auto& a = agent_of("mnist");
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() != nullptr; }));
  const auto job = body(get("/v1/jobs/mnist"));
  EXPECT_EQ(job["phase"], "running");
  EXPECT_EQ(job["round"], 1);
  EXPECT_EQ(job["workers"], 2);
  EXPECT_EQ(job["master"], "127.0.0.1:29500");
  EXPECT_EQ(job["members"][0]["first_rank"], 0);
  ASSERT_EQ(job["rounds"].size(), 1u);
  EXPECT_TRUE(job["rounds"][0].contains("forming_ms"));
}

TEST_F(HttpTest, MetricsAreInPrometheusFormat) {
  start();
  auto& a = agent_of("mnist");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  const auto text = get("/metrics");
  EXPECT_NE(text.find("# TYPE muster_connections_total counter"), std::string::npos) << text;
  EXPECT_NE(text.find("muster_job_nodes{job=\"mnist\"} 1"), std::string::npos) << text;
}

TEST_F(HttpTest, N1_WithATokenOnlyHealthzIsOpen) {
  start(Token("0123456789abcdef"));
  EXPECT_NE(get("/healthz").find("200 OK"), std::string::npos);
  for (const char* target : {"/metrics", "/v1/jobs", "/v1/jobs/x"}) {
    EXPECT_NE(get(target).find(" 401 "), std::string::npos) << target;
    EXPECT_NE(get(target, "Authorization: Bearer wrong\r\n").find(" 401 "), std::string::npos) << target;
    EXPECT_EQ(get(target, "Authorization: Bearer 0123456789abcdef\r\n").find(" 401 "), std::string::npos)
        << target;
  }
}

TEST_F(HttpTest, WhatIsNotThereAndWhatIsNotAllowed) {
  start();
  EXPECT_NE(get("/v1/jobs/none").find(" 404 "), std::string::npos);
  EXPECT_NE(get("/").find(" 404 "), std::string::npos);
  EXPECT_NE(talk("DELETE /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").find(" 405 "),
            std::string::npos);
  EXPECT_EQ(talk("nonsense\r\n\r\n"), "");
  EXPECT_EQ(talk("GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\n\r\n"), "");
}

}  // namespace
}  // namespace muster::rendezvous
