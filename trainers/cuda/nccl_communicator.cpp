#include "trainers/cuda/nccl_communicator.hpp"

#include <fmt/format.h>

#include <thread>

#include "trainers/cuda/nccl_accelerator.hpp"

namespace muster::trainers::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using worker::Buffer;
using worker::ElementType;
using worker::ReduceOp;

constexpr milliseconds ask_again_after{1};
constexpr milliseconds finalize_timeout{5'000};

ncclDataType_t type_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return ncclFloat32;
    case ElementType::f64:
      return ncclFloat64;
    case ElementType::f16:
      return ncclFloat16;
    case ElementType::bf16:
      return ncclBfloat16;
    case ElementType::i8:
      return ncclInt8;
    case ElementType::u8:
      return ncclUint8;
    case ElementType::i32:
      return ncclInt32;
    case ElementType::i64:
      return ncclInt64;
  }
  return ncclFloat32;
}

ncclRedOp_t op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::average:
      return ncclAvg;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
  }
  return ncclSum;
}

void CUDART_CB call_and_delete(void* data) {
  const std::unique_ptr<std::function<void()>> done(static_cast<std::function<void()>*>(data));
  (*done)();
}

}  // namespace

NcclCommunicator::NcclCommunicator(const Queue& queue, ncclComm_t communicator, int size)
    : queue_(queue), size_(size), communicator_(communicator) {}

NcclCommunicator::~NcclCommunicator() {
  if (communicator_) {
    // Where a peer is still receiving from here, it gets the time to; one that has gone must not hold us.
    const auto left =
        settle(ncclCommFinalize(communicator_), "ncclCommFinalize", steady_clock::now() + finalize_timeout);
    if (left)
      abort();
    else
      static_cast<void>(ncclCommDestroy(communicator_));  // nothing of it is used any more
  }
  // The stream's last operation may never end after an abort; CUDA frees both when it has.
  if (computed_) static_cast<void>(cudaEventDestroy(computed_));
  if (stream_) static_cast<void>(cudaStreamDestroy(stream_));
}

Fault NcclCommunicator::prepare() {
  if (auto fault = queue_.enter()) return fault;
  if (auto fault = MUSTER_CHECKED(queue_.label(), cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)))
    return fault;
  return MUSTER_CHECKED(queue_.label(), cudaEventCreateWithFlags(&computed_, cudaEventDisableTiming));
}

Fault NcclCommunicator::wait_connected(milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  auto fault = settle(ncclInProgress, "ncclCommInitRankConfig", steady_clock::now() + timeout);
  if (fault) *fault += fmt::format(" (connecting {} ranks)", size_);
  return fault;
}

/// With the mutex held.
Fault NcclCommunicator::settle(ncclResult_t begun, std::string_view call, Deadline deadline) {
  const auto site = MUSTER_CALL_SITE(queue_.label(), call);
  auto state = begun;
  while (state == ncclInProgress) {
    if (const auto asked = ncclCommGetAsyncError(communicator_, &state); asked != ncclSuccess)
      return fault_of(asked, site, communicator_);
    if (state != ncclInProgress) break;
    if (stopping_) return fmt::format("{}: {}: given up", queue_.label(), call);
    if (steady_clock::now() >= deadline)
      return fmt::format("{}: {}: not done in time: some rank has not come", queue_.label(), call);
    std::this_thread::sleep_for(ask_again_after);
  }
  return fault_of(state, site, communicator_);
}

/// What is queued from here on takes effect after what has been queued for computing.
Fault NcclCommunicator::start_after_compute() {
  if (auto fault = queue_.enter()) return fault;
  if (auto fault = MUSTER_CHECKED(queue_.label(), cudaEventRecord(computed_, queue_.stream()))) return fault;
  return MUSTER_CHECKED(queue_.label(), cudaStreamWaitEvent(stream_, computed_));
}

Fault NcclCommunicator::queue_call(std::string_view call, const std::function<ncclResult_t()>& start) {
  const std::lock_guard lock(mutex_);
  if (!communicator_) return fmt::format("{}: {}: the communicator has been given up", queue_.label(), call);
  if (auto fault = start_after_compute()) return fault;
  // The group's own deadline ends it, by abort().
  return settle(start(), call, Deadline::max());
}

Fault NcclCommunicator::broadcast(Buffer buffer, int root) {
  if (buffer.count == 0) return {};
  return queue_call("ncclBroadcast", [&] {
    return ncclBroadcast(buffer.data, buffer.data, buffer.count, type_of(buffer.type), root, communicator_,
                         stream_);
  });
}

Fault NcclCommunicator::all_reduce(Buffer buffer, ReduceOp op) {
  if (buffer.count == 0) return {};
  return queue_call("ncclAllReduce", [&] {
    return ncclAllReduce(buffer.data, buffer.data, buffer.count, type_of(buffer.type), op_of(op),
                         communicator_, stream_);
  });
}

Fault NcclCommunicator::reduce_scatter(Buffer input, Buffer output, ReduceOp op) {
  if (output.count == 0) return {};
  return queue_call("ncclReduceScatter", [&] {
    return ncclReduceScatter(input.data, output.data, output.count, type_of(input.type), op_of(op),
                             communicator_, stream_);
  });
}

Fault NcclCommunicator::all_gather(Buffer input, Buffer output) {
  if (input.count == 0) return {};
  return queue_call("ncclAllGather", [&] {
    return ncclAllGather(input.data, output.data, input.count, type_of(input.type), communicator_, stream_);
  });
}

/// NCCL has none: a broadcast from each rank, all in one go.
Fault NcclCommunicator::all_gather_uneven(Buffer input, Buffer output, std::span<const std::size_t> counts) {
  if (output.count == 0) return {};
  return queue_call("ncclGroupEnd", [&] {
    auto worst = ncclGroupStart();
    auto* to = static_cast<std::byte*>(output.data);
    for (std::size_t root = 0; root < counts.size(); ++root) {
      const auto code = counts[root] == 0 ? ncclSuccess
                                          : ncclBroadcast(input.data, to, counts[root], type_of(output.type),
                                                          static_cast<int>(root), communicator_, stream_);
      if (code != ncclSuccess && code != ncclInProgress) worst = code;
      to += counts[root] * worker::size_of(output.type);
    }
    const auto ended = ncclGroupEnd();
    return worst == ncclSuccess ? ended : worst;
  });
}

Fault NcclCommunicator::when_done(std::function<void()> done) {
  if (auto fault = queue_.enter()) return fault;
  auto kept = std::make_unique<std::function<void()>>(std::move(done));
  auto fault = MUSTER_CHECKED(queue_.label(), cudaLaunchHostFunc(stream_, call_and_delete, kept.get()));
  if (!fault) static_cast<void>(kept.release());  // call_and_delete's now
  return fault;
}

Fault NcclCommunicator::fault() {
  // Who holds it is in a call that ends by itself or with abort(), and tells of its own fault.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !communicator_) return {};
  auto state = ncclSuccess;
  const auto asked = MUSTER_CHECKED(queue_.label(), ncclCommGetAsyncError(communicator_, &state));
  if (asked) return asked;
  if (state != ncclSuccess && state != ncclInProgress)
    return fault_of(state, MUSTER_CALL_SITE(queue_.label(), "NCCL"), communicator_);
  const auto stream = cudaStreamQuery(stream_);
  return stream == cudaErrorNotReady ? Fault()
                                     : fault_of(stream, MUSTER_CALL_SITE(queue_.label(), "NCCL's stream"));
}

void NcclCommunicator::abort() {
  stopping_ = true;  // ends a call that waits in settle()
  const std::lock_guard lock(mutex_);
  if (!communicator_) return;
  static_cast<void>(ncclCommAbort(communicator_));  // there is no more that could be done about a failure
  communicator_ = nullptr;
}

Fault NcclAccelerator::make_connection_id(std::string& id) {
  ncclUniqueId made;
  if (auto fault = MUSTER_CHECKED(queue_.label(), ncclGetUniqueId(&made))) return fault;
  id.assign(made.internal, sizeof(made.internal));
  return {};
}

Fault NcclAccelerator::connect(const std::string& id, int rank, int size, milliseconds timeout,
                               std::unique_ptr<worker::Communicator>& communicator) {
  ncclUniqueId made;
  if (id.size() != sizeof(made.internal))
    return fmt::format("{}: an NCCL id has {} bytes, not {}", queue_.label(), sizeof(made.internal),
                       id.size());
  id.copy(made.internal, sizeof(made.internal));
  if (auto fault = queue_.enter()) return fault;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t raw = nullptr;
  const auto begun = ncclCommInitRankConfig(&raw, size, made, rank, &config);
  if (begun != ncclSuccess && begun != ncclInProgress)
    return fault_of(begun, MUSTER_CALL_SITE(queue_.label(), "ncclCommInitRankConfig"));
  auto formed = std::make_unique<NcclCommunicator>(queue_, raw, size);
  auto fault = formed->prepare();
  if (!fault) fault = formed->wait_connected(timeout);
  if (fault) {
    formed->abort();
    return fault;
  }
  communicator = std::move(formed);
  return {};
}

}  // namespace muster::trainers::cuda
