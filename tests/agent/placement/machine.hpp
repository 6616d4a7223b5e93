// A machine that does not exist: a folder that stands for "/".
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "agent/placement/topology.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::agent {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Machine {
 public:
  void node(int number, const std::string& cpus) {
    folder_.write("sys/devices/system/node/node" + std::to_string(number) + "/cpulist", cpus + "\n");
  }
  void cpu(int number, int socket, const std::string& threads, const std::string& shares_cache) {
    const std::string base = "sys/devices/system/cpu/cpu" + std::to_string(number) + "/";
    folder_.write(base + "topology/physical_package_id", std::to_string(socket) + "\n");
    folder_.write(base + "topology/thread_siblings_list", threads + "\n");
    folder_.write(base + "cache/index0/level", "1\n");
    folder_.write(base + "cache/index0/shared_cpu_list", threads + "\n");
    folder_.write(base + "cache/index1/level", "3\n");
    folder_.write(base + "cache/index1/shared_cpu_list", shares_cache + "\n");
  }
  void gpu_of_driver(const std::string& pci, const std::string& uuid, int numa_node) {
    folder_.write(
        "proc/driver/nvidia/gpus/" + pci + "/information",
        "Model: \t\t NVIDIA H200\nIRQ:   \t\t 42\nGPU UUID: \t " + uuid + "\nBus Location: \t " + pci + "\n");
    folder_.write("sys/bus/pci/devices/" + pci + "/numa_node", std::to_string(numa_node) + "\n");
  }
  void device_file(const std::string& name) { folder_.write("dev/" + name, ""); }

  /// Two sockets, two nodes each, two cores of two threads each node; two nodes' halves share a cache.
  void two_sockets_of_two_nodes() {
    const char* cpus[] = {"0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"};
    for (int number = 0; number < 4; ++number) node(number, cpus[number]);
    for (int core = 0; core < 8; ++core) {
      const std::string threads = std::to_string(core) + "," + std::to_string(core + 8);
      cpu(core, core / 4, threads, threads);
      cpu(core + 8, core / 4, threads, threads);
    }
  }
  std::vector<int> all(int count) const {
    std::vector<int> cpus;
    for (int number = 0; number < count; ++number) cpus.push_back(number);
    return cpus;
  }

  const std::filesystem::path& root() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace muster::agent
