#include "agent/health/health_page.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const HealthSubject subject{"mnist", "n1", 10s};

Vitals running() {
  return {AgentState::running,
          "round 2: 2 workers running",
          2,
          4,
          1,
          {{2, 0, 4711, true, 811, 200ms, false}, {3, 1, 4712, true, -1, {}, false}}};
}

TEST(HealthPage, L2_SaysStateRoundRanksAndLastProgress) {
  const HealthAnswer answer = answer_health("/health", subject, running());
  EXPECT_EQ(answer.status, 200);
  const auto json = nlohmann::json::parse(answer.body);
  EXPECT_EQ(json["healthy"], true);
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["why"], "round 2: 2 workers running");
  EXPECT_EQ(json["job"], "mnist");
  EXPECT_EQ(json["node"], "n1");
  EXPECT_EQ(json["round"], 2);
  EXPECT_EQ(json["world_size"], 4);
  EXPECT_EQ(json["restarts"], 1);
  EXPECT_EQ(json["ranks"][0]["rank"], 2);
  EXPECT_EQ(json["ranks"][0]["step"], 811);
  EXPECT_DOUBLE_EQ(json["ranks"][0]["since_progress_s"], 0.2);
  EXPECT_TRUE(json["ranks"][1]["step"].is_null());
  EXPECT_TRUE(json["ranks"][1]["since_progress_s"].is_null());
}

TEST(HealthPage, L2_AStuckRankIs503AndNamed) {
  Vitals vitals = running();
  vitals.workers[1].stuck = true;
  vitals.workers[1].since_progress = 83s;
  const HealthAnswer answer = answer_health("/healthz?verbose", subject, vitals);
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body,
              HasSubstr("rank 3 (local 1, pid 4712) told of no step for 1 min 23 s; 10 s is allowed"));
}

TEST(HealthPage, AnotherPageIs404) { EXPECT_EQ(answer_health("/metrics", subject, running()).status, 404); }

}  // namespace
}  // namespace muster::agent
