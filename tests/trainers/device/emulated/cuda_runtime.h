// The part of CUDA's runtime that the module uses, done by the processor: so its sources run where there is no GPU.
//
// What this proves: indices, sums, shared scratch memory, the layout that cuBLAS is told, errors on their way. What it
// cannot: anything that is about time, as calls are done when they return.
//
// Blocks run one after the other. A block's threads do too, each to its end; where they wait for each other, they are
// fibers that take turns at __syncthreads().
#pragma once

#include <math.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>

#define __global__
#define __device__
#define __shared__ static
#define CUDART_CB

namespace emulation {

struct Index {
  unsigned x = 0;
};
void run(unsigned blocks, unsigned threads, const std::function<void()>& kernel);
void run_together(unsigned blocks, unsigned threads, const std::function<void()>& kernel);

}  // namespace emulation

extern emulation::Index threadIdx, blockIdx, blockDim, gridDim;
void __syncthreads();

#define MUSTER_LAUNCH(kernel, launch, stream, ...) \
  (static_cast<void>(stream), emulation::run((launch).blocks, (launch).threads, [&] { kernel(__VA_ARGS__); }))
#define MUSTER_LAUNCH_TOGETHER(kernel, launch, stream, ...) \
  (static_cast<void>(stream),                               \
   emulation::run_together((launch).blocks, (launch).threads, [&] { kernel(__VA_ARGS__); }))

inline std::uint32_t __float_as_uint(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long value) {
  const auto before = *to;
  *to += value;
  return before;
}

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorNoDevice,
  cudaErrorNotReady
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
using cudaStream_t = struct EmulatedStream*;
using cudaEvent_t = struct EmulatedEvent*;
using cudaHostFn_t = void (*)(void*);
struct cudaDeviceProp {
  char name[256];
};
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDisableTiming = 2;

/// There are two of them.
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
/// A terabyte is too much. What is in new memory is not zero.
cudaError_t cudaMalloc(void** data, std::size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data);
const char* cudaGetErrorString(cudaError_t code);
const char* cudaGetErrorName(cudaError_t code);

inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
