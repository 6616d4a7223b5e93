#include "base/exit_cause.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace muster {
namespace {

TEST(ExitCause, ShellCodeOfEveryExitCodeAndSignal) {
  for (int code = 0; code < 256; ++code) EXPECT_EQ(ExitCause::exited(code).shell_code(), code);
  for (int signal = 1; signal < 65; ++signal)
    EXPECT_EQ(ExitCause::signalled(signal).shell_code(), 128 + signal);
  EXPECT_EQ(ExitCause::start_failed(ENOENT).shell_code(), 127);
  EXPECT_EQ(ExitCause::start_failed(EACCES).shell_code(), 126);
}

TEST(ExitCause, WaitStatusWord) {
  EXPECT_EQ(exit_cause_from_wait_status(3 << 8), ExitCause::exited(3));
  EXPECT_EQ(exit_cause_from_wait_status(SIGKILL), ExitCause::signalled(SIGKILL));
}

TEST(ExitCause, SentenceSaysWhoSentTheSignal) {
  auto cause = ExitCause::signalled(SIGKILL);
  EXPECT_EQ(cause.sentence(), "was killed by SIGKILL, not sent by muster");
  cause.stopped_by_muster = true;
  EXPECT_EQ(cause.sentence(), "was killed by SIGKILL, sent by muster");
  EXPECT_EQ(ExitCause::start_failed(ENOENT).sentence(),
            "could not be started: No such file or directory (ENOENT)");
}

}  // namespace
}  // namespace muster
