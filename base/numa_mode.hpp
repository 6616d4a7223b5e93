// torchrun's ways of binding workers to CPUs: --numa-binding.
#pragma once

namespace muster {

enum class NumaMode {
  node,          ///< all CPUs of the NUMA node of the worker's device
  socket,        ///< all CPUs of that node's socket
  exclusive,     ///< whole cores of the node, shared out over its devices
  core_complex,  ///< CPUs that share one last-level cache
};

}  // namespace muster
