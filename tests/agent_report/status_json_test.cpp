#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/agent_report/sample_report.hpp"

namespace muster::agent {
namespace {

TEST(StatusJson, I6_EveryWorkerHasExitSignalTimeAndEndedBy) {
  const auto json = nlohmann::json::parse(status_json(sample_failed_job()));
  ASSERT_EQ(json["workers"].size(), 4u);
  for (const auto& worker : json["workers"])
    for (const char* key :
         {"round", "rank", "local_rank", "pid", "exit", "signal", "ended_by", "started_ms", "ended_ms"})
      EXPECT_TRUE(worker.contains(key)) << key;
  EXPECT_EQ(json["workers"][2]["exit"], 3);
  EXPECT_EQ(json["workers"][2]["ended_by"], "itself");
  EXPECT_EQ(json["workers"][3]["signal"], "SIGTERM");
  EXPECT_EQ(json["workers"][3]["ended_by"], "muster");
  EXPECT_EQ(json["reason"], "failed");
  EXPECT_EQ(json["exit_code"], 3);
  EXPECT_EQ(json["first_failure"]["rank"], 1);
}

TEST(StatusJson, ASignalFromElsewhereIsToldFromOurs) {
  const auto json = nlohmann::json::parse(status_json(sample_failed_job(ExitCause::signalled(SIGKILL))));
  EXPECT_EQ(json["workers"][2]["ended_by"], "signal");
  EXPECT_EQ(json["exit_code"], 137);
}

TEST(StatusJson, F9_APreemptedJobSaysSo) {
  JobReport report;
  report.outcome.kind = rendezvous::OutcomeKind::preempted;
  report.stop_signal = SIGTERM;
  const auto json = nlohmann::json::parse(status_json(report));
  EXPECT_EQ(json["reason"], "preempted");
  EXPECT_EQ(json["stop_signal"], "SIGTERM");
  EXPECT_EQ(json["exit_code"], 143);
}

TEST(StatusJson, BytesThatAreNotUtf8DoNotBreakIt) {
  JobReport report = sample_failed_job();
  report.outcome.first_failure->last_lines = {"bad \xff\xfe byte"};
  report.workers[0].end.reset();
  const auto json = nlohmann::json::parse(status_json(report));
  EXPECT_EQ(json["first_failure"]["last_lines"].size(), 1u);
  EXPECT_TRUE(json["workers"][0]["exit"].is_null());
}

TEST(StatusJson, G4_WhatOutlivedSigkillIsNamedAndIsInTheExitCode) {
  JobReport report = sample_failed_job();
  EXPECT_TRUE(nlohmann::json::parse(status_json(report))["survivors"].empty());
  report.survivors = {"pid 4711 is in state D and outlived SIGKILL"};
  const auto json = nlohmann::json::parse(status_json(report));
  EXPECT_EQ(json["survivors"][0], report.survivors[0]);
  EXPECT_EQ(json["exit_code"], kUncleanExitCode);
}

TEST(StatusJson, WhatIsNotKnownIsNullAndWhatWasLostIsCounted) {
  JobReport report = sample_failed_job();
  report.workers[2].pid = report.outcome.first_failure->pid = 0;  // it could not be started
  report.workers[3].killed_rest = "pid 4712 (sleep 600)";
  report.lost_console_lines = 17;
  const auto json = nlohmann::json::parse(status_json(report));
  EXPECT_TRUE(json["workers"][2]["pid"].is_null());
  EXPECT_TRUE(json["first_failure"]["pid"].is_null());
  EXPECT_TRUE(json["workers"][2]["killed_rest"].is_null());
  EXPECT_EQ(json["workers"][3]["killed_rest"], "pid 4712 (sleep 600)");
  EXPECT_EQ(json["lost_console_lines"], 17);
}

}  // namespace
}  // namespace muster::agent
