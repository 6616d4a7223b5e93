#include "rendezvous/server/http.hpp"

#include <nlohmann/json.hpp>

#include "tests/rendezvous/support/daemon_fixture.hpp"

namespace muster::rendezvous {
namespace {

class HttpTest : public DaemonTest {
 protected:
  void start(std::optional<Token> token = std::nullopt) {
    auto settings = options();
    settings.token = std::move(token);
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
