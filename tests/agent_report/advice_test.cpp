#include "agent/report/advice.hpp"

#include <gmock/gmock.h>

#include <cerrno>

#include "tests/agent_report/sample_report.hpp"

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

ExitCause killed(const char* evidence) {
  ExitCause cause = ExitCause::signalled(SIGKILL);
  cause.evidence = evidence;
  return cause;
}

TEST(Advice, I1_SigkillIsJudgedByTheOomCount) {
  const auto oom = advice_for(sample_failure(killed("its cgroup counted 1 OOM kill")));
  EXPECT_EQ(oom.guess, ", most likely out of memory");
  const auto sent = advice_for(sample_failure(killed("its cgroup counted no OOM kill")));
  EXPECT_EQ(sent.guess, "");
  EXPECT_THAT(sent.more, HasSubstr("no out-of-memory kill was counted"));
  EXPECT_THAT(advice_for(sample_failure(killed(""))).next, HasSubstr("was it out of memory?"));
}

TEST(Advice, AMissingModuleIsNamedAsThat) {
  auto failure = sample_failure(ExitCause::exited(1));
  failure.last_lines.push_back("ModuleNotFoundError: No module named 'torch'");
  EXPECT_THAT(advice_for(failure).guess, HasSubstr("module is missing"));
  failure.last_lines.clear();
  failure.message = "ModuleNotFoundError: No module named 'torch'";
  EXPECT_THAT(advice_for(failure).guess, HasSubstr("module is missing"));
}

TEST(Advice, AMissingModuleNamesTheInterpreterThatLackedIt) {
  auto failure = sample_failure(ExitCause::exited(1));
  failure.last_lines.push_back("ModuleNotFoundError: No module named 'torch.foo'");
  const auto advice = advice_for(failure, "/venv/bin/python");
  EXPECT_EQ(advice.guess, ", module torch.foo is missing");
  EXPECT_EQ(advice.next, "install it for /venv/bin/python");
  EXPECT_THAT(advice.more, HasSubstr("/venv/bin/python, which ran the program"));
}

TEST(Advice, J5_WithoutLogsNoneIsNamed) {
  for (const bool silent : {true, false}) {
    auto failure = sample_failure(ExitCause::exited(1));
    if (silent) failure.last_lines.clear();
    failure.log_path.clear();
    const auto advice = advice_for(failure);
    EXPECT_THAT(advice.next + advice.more, ::testing::Not(HasSubstr("see its log")));
    EXPECT_THAT(advice.more, HasSubstr("no logs were kept"));
    EXPECT_THAT(advice.more, ::testing::Not(HasSubstr("stdout.log")));
  }
}

TEST(Advice, H3_WhoLeftEarlyIsNotSentToATracebackThatDidNotEndIt) {
  auto failure = sample_failure(ExitCause::exited(0));
  failure.last_lines.push_back("CUDA out of memory");
  EXPECT_EQ(advice_for(failure).guess, " before it said that it was done");
  EXPECT_EQ(advice_for(failure).next, "find out why it left early");
  EXPECT_THAT(advice_for(failure).more, HasSubstr("--expect-done"));
}

TEST(Advice, WhoWroteAnErrorFileAndNothingToStderrIsNotLookedForInItsLastLines) {
  auto failure = sample_failure(ExitCause::exited(1));
  failure.last_lines.clear();
  failure.message = "no data";
  EXPECT_EQ(advice_for(failure).next, "see its error file");
  EXPECT_THAT(advice_for(failure).more, ::testing::Not(HasSubstr("last lines")));
}

TEST(Advice, WhoSaidNothingIsNotLookedForInItsLastLines) {
  for (int number = 1; number <= 64; ++number) {
    auto failure = sample_failure(ExitCause::signalled(number));
    failure.last_lines.clear();
    const auto advice = advice_for(failure);
    EXPECT_THAT(advice.next + advice.more, ::testing::Not(HasSubstr("last lines"))) << number;
    failure.message = "ImportError: no\nTraceback";
    EXPECT_THAT(advice_for(failure).next, ::testing::Not(HasSubstr("last lines"))) << number;
  }
}

TEST(Advice, ATracebackOfTheErrorFileAloneIsMendedThere) {
  auto failure = sample_failure(ExitCause::exited(1));
  failure.last_lines.clear();
  failure.message =
      "Traceback (most recent call last):\n  File \"train.py\", line 4, in <module>\nValueError: no";
  EXPECT_EQ(advice_for(failure).next, "see train.py line 4");
  EXPECT_THAT(advice_for(failure).more, HasSubstr("mend what its error file says"));
}

TEST(Advice, EveryKindOfFailureHasSomeAndFitsOnALine) {
  std::vector<ExitCause> causes = {ExitCause::start_failed(ENOENT),
                                   ExitCause::start_failed(EAGAIN),
                                   ExitCause::start_failed(ENOEXEC),
                                   ExitCause::start_failed(ENOSPC),
                                   ExitCause::exited(0),
                                   ExitCause::exited(255)};
  for (int number = 1; number <= 64; ++number) causes.push_back(ExitCause::signalled(number));
  for (const ExitCause& cause : causes) {
    const auto advice = advice_for(sample_failure(cause));
    EXPECT_FALSE(advice.next.empty()) << cause.sentence();
    EXPECT_FALSE(advice.more.empty()) << cause.sentence();
    EXPECT_LT(advice.more.size(), 200u);
    EXPECT_EQ(advice.more.find('\n'), std::string::npos);
  }
}

TEST(Advice, AScriptThatNamesNoInterpreterIsToldSo) {
  const auto advice = advice_for(sample_failure(ExitCause::start_failed(ENOEXEC)));
  EXPECT_THAT(advice.guess, HasSubstr("no script that names its interpreter"));
  EXPECT_THAT(advice.more, HasSubstr("`#!/bin/sh`"));
}

}  // namespace
}  // namespace muster::agent
