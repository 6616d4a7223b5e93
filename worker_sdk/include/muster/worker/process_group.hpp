// A group of ranks that compute together. One interface, several backends (Gloo for the host's memory, NCCL for that of
// GPUs): nothing above it may know which one it has.
//
// Every rank of the group must make the same calls in the same order, with the same element types and counts.
// Calls may be made from one thread at a time. Buffers belong to the caller and must stay alive and untouched
// until the Work that a call returned is done; an input and an output may not overlap.
//
// Operations run in the background: the collectives one after the other in the order of the calls, sends and
// receives in the order of the calls for each peer and direction. A call blocks only when
// `max_queued_operations` of them wait. Same world size, same counts and same inputs give the same bits, on
// every rank and in every run.
//
// After a failure the group is broken: the connections are closed, so that the other ranks fail too and soon,
// and every later call fails with the same cause. Calls that cannot be right (sizes that do not fit, a rank,
// a type or a reduction that does not exist, a null pointer, memory on a device without an accelerator) throw std::invalid_argument
// at once and break nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "muster/worker/element_type.hpp"

namespace muster::worker {

/// Where memory lies: the processor can use it, or only the accelerator that the worker joined with can.
enum class Place : std::uint8_t { host, device };

/// Memory that a collective reads or writes: `count` elements of `type` at `data`.
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;
  ElementType type = ElementType::f32;
  Place place = Place::host;
  /// Of what, as messages name the call: "gradients of 0.weight". The same on every rank. It is read
  /// before the call returns.
  std::string_view what = {};

  std::size_t bytes() const { return count * size_of(type); }
  Buffer named(std::string_view of_what) const { return {data, count, type, place, of_what}; }
};

inline Buffer buffer_of(std::span<float> values) { return {values.data(), values.size(), ElementType::f32}; }
inline Buffer buffer_of(std::span<double> values) { return {values.data(), values.size(), ElementType::f64}; }
inline Buffer buffer_of(std::span<std::int64_t> values) {
  return {values.data(), values.size(), ElementType::i64};
}
inline Buffer buffer_of(std::span<std::int32_t> values) {
  return {values.data(), values.size(), ElementType::i32};
}
inline Buffer buffer_of(std::span<std::uint8_t> values) {
  return {values.data(), values.size(), ElementType::u8};
}

enum class ReduceOp : std::uint8_t { sum, average, min, max };

/// A collective or the forming of a group failed because of a peer or the network: "what: why".
class CollectiveError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr std::size_t max_queued_operations = 1024;

/// A collective under way.
class Work {
 public:
  virtual ~Work() = default;
  /// Blocks until it is done. Throws CollectiveError on a time-out (naming the operation and, where that can
  /// be known, the ranks it waited for) or a lost peer. May be called once or more, from any thread.
  virtual void wait() = 0;
  /// As wait(), but no longer than `timeout`: false if it is not done then, which changes nothing.
  virtual bool wait_for(std::chrono::milliseconds timeout) = 0;
  virtual bool done() const = 0;
};

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  ProcessGroup() = default;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string backend() const = 0;

  /// The root's buffer on every rank.
  virtual std::shared_ptr<Work> broadcast(Buffer buffer, int root) = 0;
  /// In place: element by element over all ranks. The average is the sum, then divided (floating types only).
  virtual std::shared_ptr<Work> all_reduce(Buffer buffer, ReduceOp op) = 0;
  /// `input` has size() x output.count elements and keeps them; rank r gets the reduction of the r-th part.
  virtual std::shared_ptr<Work> reduce_scatter(Buffer input, Buffer output, ReduceOp op) = 0;
  /// `output` has size() x input.count elements; part r is rank r's input.
  virtual std::shared_ptr<Work> all_gather(Buffer input, Buffer output) = 0;
  /// Uneven: `counts[r]` elements come from rank r, output has their sum.
  virtual std::shared_ptr<Work> all_gather_uneven(Buffer input, Buffer output,
                                                  std::span<const std::size_t> counts) = 0;
  virtual std::shared_ptr<Work> barrier() = 0;
  virtual std::shared_ptr<Work> send(Buffer buffer, int destination) = 0;
  virtual std::shared_ptr<Work> receive(Buffer buffer, int source) = 0;

  /// Closes the connections: what is under way fails soon, on this rank and on the others, and so does every later
  /// call. From any thread.
  virtual void abort() = 0;
};

}  // namespace muster::worker
