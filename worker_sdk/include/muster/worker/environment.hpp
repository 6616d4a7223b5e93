// What the launcher tells a worker by environment variables: torchrun's names, so that a worker runs under
// muster and under PyTorch's torchrun alike.
#pragma once

#include <cstdint>
#include <string>

namespace muster::worker {

struct Environment {
  int rank = 0;
  int local_rank = 0;
  int group_rank = 0;
  int world_size = 1;
  int local_world_size = 1;
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;
  bool agent_store = false;  ///< TORCHELASTIC_USE_AGENT_STORE: the launcher serves the store, rank 0 must not
  int restart_count = 0;
  int max_restarts = 0;
  int round = 0;  ///< MUSTER_ROUND; 0 under another launcher
  std::string run_id = "none";
  std::string error_file;
  bool debug_collectives = false;  ///< MUSTER_DEBUG has the word "collectives"

  /// Reads the process's environment. Without RANK and WORLD_SIZE: a world of one. Throws
  /// std::invalid_argument that names the variable, its value and what was expected.
  static Environment read();
};

}  // namespace muster::worker
