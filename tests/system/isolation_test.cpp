// Jobs on one machine do not meet.
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <set>

#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

TEST(Isolation, C1_TwoDefaultJobsStartedTogetherBothSucceed50Times) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    const Job job;
    Program first(muster_command("--nproc-per-node=2", "touch " + (job.folder / "first-{rank}")),
                  job.options());
    Program second(muster_command("--nproc-per-node=2", "touch " + (job.folder / "second-{rank}")),
                   job.options());
    const auto first_ended = first.wait(30s);
    const auto second_ended = second.wait(30s);
    ASSERT_EQ(first_ended.code, 0) << first_ended.err;
    ASSERT_EQ(second_ended.code, 0) << second_ended.err;
    for (const char* name : {"first-0", "first-1", "second-0", "second-1"})
      ASSERT_TRUE(std::filesystem::exists(job.folder / name)) << name;
  }
}

TEST(Isolation, C6_EightJobsAtOnce) {
  const Job job;
  std::vector<std::unique_ptr<Program>> programs;
  for (int number = 0; number < 8; ++number)
    programs.push_back(std::make_unique<Program>(
        muster_command("--nproc-per-node=2", "touch " + (job.folder / std::to_string(number)) + "-{rank}"),
        job.options()));
  for (const auto& program : programs) {
    const auto ended = program->wait(60s);
    EXPECT_EQ(ended.code, 0) << ended.err;
  }
  for (int number = 0; number < 8; ++number)
    EXPECT_TRUE(std::filesystem::exists(job.folder / (std::to_string(number) + "-1"))) << number;
}

// The inodes of a process's sockets, as "socket:[N]".
std::set<std::string> sockets_of(pid_t pid) {
  std::set<std::string> inodes;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
    const auto target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

// Local addresses, as the kernel's hexadecimal "ADDRESS:PORT", of those sockets.
std::vector<std::string> bound_addresses(const std::set<std::string>& inodes) {
  std::vector<std::string> addresses;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"}) {
    std::istringstream lines(content(table));
    for (std::string line; std::getline(lines, line);) {
      const auto columns = words_of(line);
      if (columns.size() > 9 && inodes.count(columns[9]) > 0) addresses.push_back(columns[1]);
    }
  }
  return addresses;
}

TEST(Isolation, O3_AWorkerWithoutStandardInputGetsNoSocketOfTheLaunchers) {
  const Job job;
  const auto ended =
      run({"/bin/sh", "-c", "exec " + kMuster + " --no-python readlink /proc/self/fd/0 <&-"}, job.options());
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, ::testing::HasSubstr("/dev/null"));
}

TEST(Isolation, OnlyLoopbackIsBound) {
  const Job job;
  Program program(muster_command("--nproc-per-node=2", "out 1 up then wait"), job.options());
  ASSERT_TRUE(program.wait_for("up", 20s));
  const auto addresses = bound_addresses(sockets_of(program.pid()));
  EXPECT_FALSE(addresses.empty()) << "the worker store listens";
  for (const auto& address : addresses) EXPECT_EQ(address.substr(0, 9), "0100007F:") << address;
}

}  // namespace
}  // namespace muster::test
