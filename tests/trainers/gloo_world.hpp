// Ranks that are threads of the test, with Gloo groups over a store in memory: the world, and the nodes that it is cut
// into.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/worker_sdk/memory_store.hpp"
#include "worker_sdk/src/gloo_group.hpp"
#include "worker_sdk/src/single_group.hpp"

namespace muster::trainers {

/// A rank's groups.
struct RankGroups {
  std::unique_ptr<worker::ProcessGroup> world;
  std::unique_ptr<worker::ProcessGroup> alone;
  std::unique_ptr<worker::ProcessGroup> node;    ///< the ranks on its node
  std::unique_ptr<worker::ProcessGroup> across;  ///< those in its place on other nodes
};

class GlooWorld {
 public:
  GlooWorld(int nodes, int ranks_per_node) : nodes_(nodes), ranks_per_node_(ranks_per_node) {}

  int size() const { return nodes_ * ranks_per_node_; }

  /// Runs `body` once for each rank, each on its own thread; rethrows the first exception by rank.
  void run(const std::function<void(RankGroups&)>& body) {
    const auto store = std::make_shared<worker::test::MemoryStore>();
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size()));
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < size(); ++rank) {
        threads.emplace_back([&, rank] {
          try {
            auto groups = make_groups(rank, store);
            body(groups);
          } catch (const std::exception&) {
            failures[static_cast<std::size_t>(rank)] = std::current_exception();
          }
        });
      }
    }
    for (auto& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

 private:
  static std::unique_ptr<worker::ProcessGroup> make_group(
      const std::string& name, int rank, int size, const std::shared_ptr<worker::KeyValueStore>& store) {
    if (size == 1) return worker::make_single_group();
    worker::GlooOptions options;
    options.mesh.rank = rank;
    options.mesh.size = size;
    options.mesh.prefix = name;
    options.mesh.address = "127.0.0.1";
    options.mesh.timeout = std::chrono::seconds(60);
    options.collective_timeout = std::chrono::seconds(60);
    return worker::make_gloo_group(options, store);
  }

  RankGroups make_groups(int rank, const std::shared_ptr<worker::KeyValueStore>& store) const {
    const int node = rank / ranks_per_node_;
    const int place = rank % ranks_per_node_;
    RankGroups groups;
    groups.world = make_group("world", rank, size(), store);
    groups.alone = worker::make_single_group();
    groups.node = make_group("node" + std::to_string(node), place, ranks_per_node_, store);
    groups.across = make_group("across" + std::to_string(place), node, nodes_, store);
    return groups;
  }

  int nodes_;
  int ranks_per_node_;
};

}  // namespace muster::trainers
