// What a worker finds: variables, descriptors, signals.
#include <gmock/gmock.h>
#include <signal.h>

#include <map>
#include <set>

#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using ::testing::IsEmpty;

using Variables = std::map<std::string, std::string>;

Variables variables_in(const std::string& text) {
  Variables variables;
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, '\0');)
    variables[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
  return variables;
}

TEST(WorkerEnvironment, HoldsTorchrunsVariables) {
  const Job job;
  const auto ended = job.run("--nproc-per-node=2 --rdzv-id=env --log-dir=" + (job.folder / "logs"),
                             "env " + (job.folder / "env-{rank}"));
  ASSERT_EQ(ended.code, 0) << ended.err;
  for (const int rank : {0, 1}) {
    Variables found = variables_in(content(job.folder / ("env-" + std::to_string(rank))));
    const Variables wanted = {{"RANK", std::to_string(rank)},
                              {"LOCAL_RANK", std::to_string(rank)},
                              {"GROUP_RANK", "0"},
                              {"ROLE_RANK", std::to_string(rank)},
                              {"ROLE_NAME", "default"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"WORLD_SIZE", "2"},
                              {"GROUP_WORLD_SIZE", "1"},
                              {"ROLE_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "127.0.0.1"},
                              {"TORCHELASTIC_RESTART_COUNT", "0"},
                              {"TORCHELASTIC_MAX_RESTARTS", "0"},
                              {"TORCHELASTIC_RUN_ID", "env"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                              {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                              {"PYTHONUNBUFFERED", "1"}};
    for (const auto& [name, value] : wanted) EXPECT_EQ(found[name], value) << name;
    EXPECT_GT(std::stoi(found["MASTER_PORT"]), 1023);
    EXPECT_GE(std::stoi(found["OMP_NUM_THREADS"]), 1);
    EXPECT_EQ(found["TORCHELASTIC_ERROR_FILE"],
              job.folder / ("logs/env/round-1/rank-" + std::to_string(rank) + "/error.json"));
  }
}

TEST(WorkerEnvironment, I10_WhoServesTheStoreIsTheUsersChoice) {
  const Job job;
  const auto ended = job.run("--rdzv-conf=worker_store=rank0", "env " + (job.folder / "env-{rank}"));
  ASSERT_EQ(ended.code, 0) << ended.err;
  Variables found = variables_in(content(job.folder / "env-0"));
  EXPECT_EQ(found["TORCHELASTIC_USE_AGENT_STORE"], "False");
  EXPECT_GT(std::stoi(found["MASTER_PORT"]), 1023);
}

TEST(WorkerEnvironment, O2_NothingElseIsChanged) {
  const Job job;
  auto options = job.options();
  options.variables["OMP_NUM_THREADS"] = "7";
  options.variables["PYTHONPATH"] = "/a:/b";
  const auto bare = run({kChild, "env", job.folder / "bare"}, options);
  ASSERT_EQ(bare.code, 0);
  ASSERT_EQ(run(muster_command("", "env " + (job.folder / "worker")), options).code, 0);
  const Variables before = variables_in(content(job.folder / "bare"));
  Variables after = variables_in(content(job.folder / "worker"));
  for (const auto& [name, value] : before) EXPECT_EQ(after[name], value) << name;
  std::set<std::string> added;
  for (const auto& [name, value] : after)
    if (before.count(name) == 0) added.insert(name);
  EXPECT_EQ(added, (std::set<std::string>{"GROUP_RANK",
                                          "GROUP_WORLD_SIZE",
                                          "LOCAL_RANK",
                                          "LOCAL_WORLD_SIZE",
                                          "MASTER_ADDR",
                                          "MASTER_PORT",
                                          "MUSTER_AGENT",
                                          "MUSTER_CHANNEL",
                                          "MUSTER_NODE",
                                          "MUSTER_ROUND",
                                          "PYTHONUNBUFFERED",
                                          "RANK",
                                          "ROLE_NAME",
                                          "ROLE_RANK",
                                          "ROLE_WORLD_SIZE",
                                          "TORCHELASTIC_ERROR_FILE",
                                          "TORCHELASTIC_MAX_RESTARTS",
                                          "TORCHELASTIC_RESTART_COUNT",
                                          "TORCHELASTIC_RUN_ID",
                                          "TORCHELASTIC_USE_AGENT_STORE",
                                          "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                          "WORLD_SIZE"}));
}

TEST(WorkerEnvironment, O3_WorkersInheritOnly0And1And2) {
  const Job job;
  ASSERT_EQ(job.run("--nproc-per-node=2", "fds " + (job.folder / "fds-{rank}")).code, 0);
  for (const char* name : {"fds-0", "fds-1"}) {
    auto descriptors = words_of(content(job.folder / name));
    EXPECT_EQ(std::set<std::string>(descriptors.begin(), descriptors.end()),
              (std::set<std::string>{"0", "1", "2"}));
  }
}

TEST(WorkerEnvironment, SignalsHaveTheirDefaults) {
  const Job job;
  ASSERT_EQ(job.run("", "signals " + (job.folder / "signals")).code, 0);
  EXPECT_THAT(content(job.folder / "signals"), IsEmpty());
}

TEST(WorkerEnvironment, ASmallLimitOfDescriptorsHoldsForWorkersButNotForTheirNumber) {
  const Job job;
  const auto ended = run({"/usr/bin/prlimit", "--nofile=256:4096", kMuster, "--nproc-per-node=100",
                          "/bin/cat", "/proc/self/limits"},
                         job.options());
  EXPECT_EQ(ended.code, 0) << ended.err;
  int seen = 0;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);)
    if (line.find("Max open files            256                  4096") != std::string::npos) ++seen;
  EXPECT_EQ(seen, 100) << ended.out.substr(0, 2000);
}

}  // namespace
}  // namespace muster::test
