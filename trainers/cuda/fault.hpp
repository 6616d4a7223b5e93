// Failed calls of CUDA's libraries, as values: which call, why, where in our sources, on which device.
//
//   cuda:1: cudaMalloc: out of memory (cudaErrorMemoryAllocation), at trainers/cuda/queue.cpp:42
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <string>
#include <string_view>

#include "muster/worker/accelerator.hpp"

namespace muster::trainers::cuda {

using worker::Fault;

struct CallSite {
  std::string_view call;  ///< as it is written; what follows the name is left out
  std::string_view file;
  int line;
  std::string_view device;  ///< "cuda:1"
};

Fault fault_of(cudaError_t code, const CallSite& site);
Fault fault_of(cublasStatus_t code, const CallSite& site);
/// `communicator` may be null; it knows more about the last error.
Fault fault_of(ncclResult_t code, const CallSite& site, ncclComm_t communicator = nullptr);

}  // namespace muster::trainers::cuda

// A macro, since only that knows the call's text.
#define MUSTER_CALL_SITE(device, text) \
  ::muster::trainers::cuda::CallSite { text, __FILE__, __LINE__, device }
#define MUSTER_CHECKED(device, call) \
  ::muster::trainers::cuda::fault_of((call), MUSTER_CALL_SITE(device, #call))
