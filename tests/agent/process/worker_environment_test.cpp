#include "agent/process/worker_environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace muster::agent {
namespace {

using Environment = std::map<std::string, std::string>;

// Fails on a name that comes twice.
Environment by_name(const std::vector<std::string>& entries) {
  Environment map;
  for (const std::string& entry : entries) {
    const auto equals = entry.find('=');
    EXPECT_TRUE(map.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second) << entry;
  }
  return map;
}

// Node 1 of 2 with 4 workers each; its local worker 2.
rendezvous::Assignment assignment() {
  rendezvous::Assignment a;
  a.round = 3;
  a.group_rank = 1;
  a.group_world_size = 2;
  a.first_rank = 4;
  a.world_size = 8;
  a.first_role_rank = 10;
  a.role_world_size = 20;
  a.restart_count = 2;
  a.max_restarts = 5;
  a.master_addr = "10.0.0.1";
  a.master_port = 41877;
  return a;
}

WorkerPlace place() {
  WorkerPlace p;
  p.local_rank = 2;
  p.local_workers = 4;
  p.role = "trainer";
  p.node = "n2";
  p.run_id = "mnist";
  p.error_file = "/logs/error.json";
  p.agent_mark = "MUSTER_AGENT=1.2.3;";
  p.usable_cpus = 9;
  return p;
}

TEST(WorkerEnvironment, EachVariableAsTorchrunGivesIt) {
  const Environment expected{
      {"LOCAL_RANK", "2"},
      {"RANK", "6"},
      {"GROUP_RANK", "1"},
      {"ROLE_RANK", "12"},
      {"ROLE_NAME", "trainer"},
      {"LOCAL_WORLD_SIZE", "4"},
      {"WORLD_SIZE", "8"},
      {"GROUP_WORLD_SIZE", "2"},
      {"ROLE_WORLD_SIZE", "20"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "41877"},
      {"TORCHELASTIC_RESTART_COUNT", "2"},
      {"TORCHELASTIC_MAX_RESTARTS", "5"},
      {"TORCHELASTIC_RUN_ID", "mnist"},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
      {"TORCHELASTIC_ERROR_FILE", "/logs/error.json"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"OMP_NUM_THREADS", "2"},
      {"PYTHONUNBUFFERED", "1"},
      {"MUSTER_ROUND", "3"},
      {"MUSTER_NODE", "n2"},
      {"MUSTER_AGENT", "1.2.3;"},
  };
  EXPECT_EQ(by_name(worker_environment({}, assignment(), place())), expected);
}

TEST(WorkerEnvironment, O2_WhatIsNotOursArrivesUnchangedAndInItsOrder) {
  const std::vector<std::string> inherited{"PATH=/bin", "PET_NNODES=2", "CUDA_VISIBLE_DEVICES=3,1",
                                           "EMPTY=", "WITH=a=b"};
  const std::vector<std::string> entries = worker_environment(inherited, assignment(), place());
  EXPECT_TRUE(std::equal(inherited.begin(), inherited.end(), entries.begin()));
}

TEST(WorkerEnvironment, OurNamesReplaceInheritedOnes) {
  const auto map = by_name(
      worker_environment({"RANK=99", "MASTER_ADDR=old", "MUSTER_AGENT=outer;"}, assignment(), place()));
  EXPECT_EQ(map.at("RANK"), "6");
  EXPECT_EQ(map.at("MASTER_ADDR"), "10.0.0.1");
  EXPECT_EQ(map.at("MUSTER_AGENT"), "1.2.3;");
}

TEST(WorkerEnvironment, TheUsersChoiceStandsWhereWeOnlyGiveADefaultEvenAnEmptyOne) {
  const auto map = by_name(
      worker_environment({"OMP_NUM_THREADS=7", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "PYTHONUNBUFFERED="},
                         assignment(), place()));
  EXPECT_EQ(map.at("OMP_NUM_THREADS"), "7");
  EXPECT_EQ(map.at("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "0");
  EXPECT_EQ(map.at("PYTHONUNBUFFERED"), "");
}

TEST(WorkerEnvironment, K1_ThreadsAreTheUsableCpusSharedOutAtLeastOne) {
  WorkerPlace p = place();
  for (const auto& [cpus, workers, threads] :
       {std::tuple{64, 4, "16"}, std::tuple{7, 2, "3"}, std::tuple{2, 8, "1"}}) {
    p.usable_cpus = cpus;
    p.local_workers = workers;
    EXPECT_EQ(by_name(worker_environment({}, assignment(), p)).at("OMP_NUM_THREADS"), threads);
  }
}

}  // namespace
}  // namespace muster::agent
