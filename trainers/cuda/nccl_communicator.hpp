// One rank's NCCL communicator, on a stream of its own that waits for the computing one.
//
// It is a non-blocking one: calls of NCCL return at once, so that a peer which never comes leaves us with time to give
// up. What they have begun is asked for until it is there, every millisecond: NCCL has nothing to wait on.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "trainers/cuda/queue.hpp"

namespace muster::trainers::cuda {

class NcclCommunicator final : public worker::Communicator {
 public:
  NcclCommunicator(const Queue& queue, ncclComm_t communicator, int size);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Stream and event. Before anything else.
  Fault prepare();
  /// Until all ranks have come.
  Fault wait_connected(std::chrono::milliseconds timeout);

  Fault broadcast(worker::Buffer buffer, int root) override;
  Fault all_reduce(worker::Buffer buffer, worker::ReduceOp op) override;
  Fault reduce_scatter(worker::Buffer input, worker::Buffer output, worker::ReduceOp op) override;
  Fault all_gather(worker::Buffer input, worker::Buffer output) override;
  Fault all_gather_uneven(worker::Buffer input, worker::Buffer output,
                          std::span<const std::size_t> counts) override;
  Fault when_done(std::function<void()> done) override;
  Fault fault() override;
  void abort() override;

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  Fault start_after_compute();
  Fault queue_call(std::string_view call, const std::function<ncclResult_t()>& start);
  Fault settle(ncclResult_t begun, std::string_view call, Deadline deadline);

  const Queue& queue_;
  const int size_;
  std::mutex mutex_;         ///< NCCL's calls on one communicator, one at a time
  ncclComm_t communicator_;  ///< null after abort()
  std::atomic<bool> stopping_{false};
  cudaStream_t stream_ = nullptr;
  cudaEvent_t computed_ = nullptr;
};

}  // namespace muster::trainers::cuda
