#include "launcher/plan.hpp"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

Plan sample() {
  Plan plan;
  plan.run_id = "mnist";
  plan.node = "n1";
  plan.workers.number = 2;
  plan.max_restarts = 3;
  plan.stop_grace = std::chrono::seconds(30);
  plan.run_folder = "/scratch/run/mnist";
  return plan;
}

TEST(StartLines, J5_NameJobPolicyAndLogs) {
  EXPECT_EQ(start_lines(sample()),
            "muster: job mnist, node n1: 2 workers here, this node alone\n"
            "muster: up to 3 restarts after failures; stop grace 30 s; logs in /scratch/run/mnist\n");
}

TEST(StartLines, K5_SayHowTheNumberCameAbout) {
  Plan plan = sample();
  plan.workers = {1, "1 CPUs in the affinity mask, no tighter cgroup quota"};
  plan.max_restarts = 0;
  plan.run_folder.clear();
  EXPECT_EQ(start_lines(plan),
            "muster: job mnist, node n1: 1 worker here (1 CPUs in the affinity mask, no tighter cgroup "
            "quota), this "
            "node alone\n"
            "muster: no restart after a failure; stop grace 30 s; no logs are kept\n");
}

}  // namespace
}  // namespace muster::launcher
