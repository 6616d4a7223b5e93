#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/trainers/device/emulated/cublas_v2.h"
#include "tests/trainers/device/emulated/nccl.h"

emulation::Index threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {
namespace {

constexpr std::size_t kStackBytes = 32768;
constexpr int kDevices = 2;

/// A block's threads, where they wait for each other.
class Fibers {
 public:
  Fibers(unsigned threads, const std::function<void()>& kernel) : kernel_(kernel), fibers_(threads) {
    for (auto& fiber : fibers_) fiber.stack.resize(kStackBytes);
  }

  void run_block() {
    now_ = this;
    for (auto& fiber : fibers_) {
      fiber.finished = false;
      ::getcontext(&fiber.context);
      fiber.context.uc_stack = {.ss_sp = fiber.stack.data(), .ss_flags = 0, .ss_size = fiber.stack.size()};
      fiber.context.uc_link = &outside_;
      ::makecontext(&fiber.context, start, 0);
    }
    while (!std::all_of(fibers_.begin(), fibers_.end(), [](const Fiber& fiber) { return fiber.finished; }))
      for (unsigned i = 0; i < fibers_.size(); ++i) turn(i);
    now_ = nullptr;
  }

  static void sync() {
    if (!now_) std::abort();  // a kernel that was launched as one whose threads do not wait
    ::swapcontext(&now_->fibers_[now_->running_].context, &now_->outside_);
  }

 private:
  struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    bool finished = false;
  };

  void turn(unsigned index) {
    if (fibers_[index].finished) return;
    running_ = index;
    threadIdx.x = index;
    ::swapcontext(&outside_, &fibers_[index].context);
  }

  static void start() {
    now_->kernel_();
    now_->fibers_[now_->running_].finished = true;
  }

  static inline Fibers* now_ = nullptr;
  const std::function<void()>& kernel_;
  std::vector<Fiber> fibers_;
  ucontext_t outside_{};
  unsigned running_ = 0;
};

}  // namespace

void run(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  gridDim.x = blocks;
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) kernel();
}

void run_together(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  gridDim.x = blocks;
  blockDim.x = threads;
  Fibers fibers(threads, kernel);
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) fibers.run_block();
}

}  // namespace emulation

void __syncthreads() { emulation::Fibers::sync(); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = emulation::kDevices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device < emulation::kDevices ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "emulated");
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (bytes >= std::size_t{1} << 40) return cudaErrorMemoryAllocation;
  *data = std::malloc(bytes);
  std::memset(*data, 0x5a, bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  function(data);
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorMemoryAllocation ? "out of memory" : "some other error";
}
const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorOther";
}

cublasStatus_t cublasSgemm_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              std::int64_t m, std::int64_t n, std::int64_t k, const float* alpha,
                              const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                              const float* beta, float* c, std::int64_t ldc) {
  const auto rows_a = op_a == CUBLAS_OP_N ? m : k;
  const auto rows_b = op_b == CUBLAS_OP_N ? k : n;
  const auto at_least = [](std::int64_t rows) { return std::max<std::int64_t>(rows, 1); };
  if (!handle || lda < at_least(rows_a) || ldb < at_least(rows_b) || ldc < at_least(m))
    return CUBLAS_STATUS_INVALID_VALUE;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += static_cast<double>(op_a == CUBLAS_OP_N ? a[i + l * lda] : a[l + i * lda]) *
               (op_b == CUBLAS_OP_N ? b[l + j * ldb] : b[j + l * ldb]);
      // As BLAS has it: with a beta of 0 it does not matter what is there.
      const double before = *beta == 0 ? 0 : *beta * c[i + j * ldc];
      c[i + j * ldc] = static_cast<float>(*alpha * sum + before);
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

struct EmulatedComm {
  int in_progress = 3;  ///< how often it will say so
};

namespace {

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}

int groups = 0;

ncclResult_t transfer(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm) {
  if (comm->in_progress > 0 && groups == 0) return ncclInvalidArgument;
  if (from != to) std::memcpy(to, from, count * size_of(type));
  comm->in_progress = 2;
  return ncclInProgress;
}

}  // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 7, sizeof(id->internal));
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId, int, ncclConfig_t* config) {
  if (size != 1 || config->blocking != 0) return ncclInvalidArgument;
  *comm = new EmulatedComm;
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = comm->in_progress > 0 ? ncclInProgress : ncclSuccess;
  if (comm->in_progress > 0) --comm->in_progress;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  comm->in_progress = 2;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm->in_progress > 0) return ncclInvalidArgument;
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int,
                           ncclComm_t comm, cudaStream_t) {
  return transfer(from, to, count, type, comm);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t) {
  return transfer(from, to, count, type, comm);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  return transfer(from, to, count, type, comm);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t) {
  return transfer(from, to, count, type, comm);
}
ncclResult_t ncclGroupStart() {
  ++groups;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  --groups;
  return ncclInProgress;
}
const char* ncclGetErrorString(ncclResult_t) { return "invalid argument"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
