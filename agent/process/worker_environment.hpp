// The environment of one worker: what the agent inherited, with torchrun's variables put in and nothing else
// changed. docs/torchrun.md lists them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace muster::agent {

/// What the Assignment does not say.
struct WorkerPlace {
  int local_rank = 0;
  int local_workers = 1;
  std::string role = "default";
  rendezvous::NodeId node;
  std::string run_id;
  std::string error_file;   ///< where the worker may say why it failed; may be empty
  std::string agent_mark;   ///< "NAME=value" that every process of this agent's job carries; may be empty
  std::string channel;      ///< of MUSTER_CHANNEL, by which the worker can speak with the agent; may be empty
  bool agent_store = true;  ///< else rank 0 serves the worker store
  int usable_cpus = 1;      ///< on this node, by affinity and cgroup quota
  std::optional<std::string> visible_devices = {};  ///< its CUDA_VISIBLE_DEVICES; none: as inherited
  bool virtual_local_rank = false;                  ///< it sees one device alone and is told LOCAL_RANK 0
};

/// Entries are "NAME=value". Ours replace inherited ones of the same name. OMP_NUM_THREADS,
/// TORCH_NCCL_ASYNC_ERROR_HANDLING and PYTHONUNBUFFERED are only added where they are not set at all.
std::vector<std::string> worker_environment(const std::vector<std::string>& inherited,
                                            const rendezvous::Assignment& assignment,
                                            const WorkerPlace& place);

}  // namespace muster::agent
