#include "agent/report/advice.hpp"

#include <gmock/gmock.h>

#include <cerrno>

#include "tests/agent_report/sample_report.hpp"

namespace muster::agent {
namespace {

using rendezvous::WorkerFailure;
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

TEST(Advice, WhatWasDoneOnPurposeNeedsNoSearch) {
  const auto rehearsed = advice_for(sample_failure(killed(kRehearsed)));
  EXPECT_EQ(rehearsed.guess, ", in a rehearsal (musterctl chaos)");
  EXPECT_EQ(rehearsed.next, "it was done on purpose");
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

WorkerFailure failure_with(int code, std::vector<std::string> lines) {
  auto failure = sample_failure(ExitCause::exited(code));
  failure.last_lines = std::move(lines);
  return failure;
}

const std::vector<std::string> kMirrorIsDown = {
    "Traceback (most recent call last):", "  File \"handled.py\", line 4, in <module>",
    "ConnectionError: mirror 1 is down"};

TEST(Advice, AnExceptionThatTheScriptHandledIsNotTheCause) {
  auto lines = kMirrorIsDown;
  EXPECT_EQ(advice_for(failure_with(1, lines)).guess, ", ConnectionError: mirror 1 is down");
  EXPECT_EQ(advice_for(failure_with(9, lines)).guess, "") << "an exception ends a Python with 1";
  lines.push_back("ERROR:root:loss is NaN at step 9; giving up");
  EXPECT_EQ(advice_for(failure_with(9, lines)).guess, "");
  EXPECT_EQ(advice_for(failure_with(9, lines)).next, "see its last lines");
}

// Its message may have several lines, or it was handled: who reads the lines sees which.
TEST(Advice, AnExceptionWithLinesBehindItIsNamedAsTheLastAndNotAsTheCause) {
  auto lines = kMirrorIsDown;
  lines.push_back("the second line of a message, or words after it");
  const auto advice = advice_for(failure_with(1, lines));
  EXPECT_EQ(advice.guess, " after ConnectionError: mirror 1 is down");
  EXPECT_EQ(advice.next, "see its last lines");
}

TEST(Advice, AFaultThatTheProgramGotOverIsNotTheCause) {
  EXPECT_EQ(advice_for(failure_with(5, {"ModuleNotFoundError: No module named 'apex'",
                                        "apex not found, using native"}),
                       "/venv/bin/python")
                .guess,
            "");
  for (const char* fault : {"ModuleNotFoundError: No module named 'apex'", "RuntimeError: CUDA out of memory",
                            "Address already in use"})
    for (const int code : {1, 5})
      EXPECT_EQ(advice_for(failure_with(code, {fault, "trying again"})).guess, "");
  EXPECT_EQ(advice_for(failure_with(5, {"ModuleNotFoundError: No module named 'apex'"})).guess, "");
  auto crashed = sample_failure(ExitCause::signalled(SIGSEGV));
  crashed.last_lines = {"CUDA out of memory, using smaller batches"};
  EXPECT_EQ(advice_for(crashed).guess, ", a crash in native code");
}

TEST(Advice, AFileAfterDashMIsNoMissingModule) {
  const auto advice = advice_for(
      failure_with(
          1, {"python3: Error while finding module specification for 'hello.py' (ModuleNotFoundError: No "
              "module named 'hello'). Try using 'hello' instead of 'hello.py' as the module name."}),
      "/venv/bin/python");
  EXPECT_THAT(advice.guess, HasSubstr("-m takes the name of a module"));
  EXPECT_THAT(advice.next + advice.more, ::testing::Not(HasSubstr("install")));
}

TEST(Advice, WhatANativeProgramSaysLastIsItsCause) {
  EXPECT_THAT(advice_for(failure_with(70, {"step 1", "bind: Address already in use", ""})).guess,
              HasSubstr("a port is taken"));
  auto aborted = sample_failure(ExitCause::signalled(SIGABRT));
  aborted.last_lines = {"terminate called after throwing an instance of 'c10::Error'",
                        "  what():  CUDA out of memory. Tried to allocate", "frame #0: x"};
  EXPECT_THAT(advice_for(aborted).guess, HasSubstr("GPU is out of memory"));
}

TEST(Advice, OfItsErrorFileTheExceptionCountsWhateverTheExitCode) {
  auto failure = failure_with(9, kMirrorIsDown);
  failure.message =
      "Traceback (most recent call last):\n  File \"train.py\", line 4, in <module>\nValueError: no";
  EXPECT_EQ(advice_for(failure).guess, ", ValueError: no");
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
