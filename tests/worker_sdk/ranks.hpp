// Runs the same function as several ranks of one Gloo group: as threads.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "muster/worker/process_group.hpp"
#include "tests/worker_sdk/memory_store.hpp"
#include "worker_sdk/src/gloo_group.hpp"

namespace muster::worker::test {

inline GlooOptions gloo_options(int rank, int size, std::chrono::milliseconds timeout) {
  GlooOptions options;
  options.mesh.rank = rank;
  options.mesh.size = size;
  options.mesh.prefix = "test";
  options.mesh.address = "127.0.0.1";
  options.mesh.timeout = std::chrono::seconds(20);
  options.collective_timeout = timeout;
  return options;
}

/// What each rank's function threw, empty if nothing.
inline std::vector<std::string> errors_of_ranks(
    int size, const std::function<void(ProcessGroup&)>& body,
    std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  auto store = std::make_shared<MemoryStore>();
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto group = make_gloo_group(gloo_options(rank, size, timeout), store);
        body(*group);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

}  // namespace muster::worker::test
