#include "worker_sdk/src/single_group.hpp"

#include <cstring>
#include <stdexcept>

#include "worker_sdk/src/arguments.hpp"

namespace muster::worker {
namespace {

class DoneWork : public Work {
 public:
  void wait() override {}
  bool wait_for(std::chrono::milliseconds) override { return true; }
  bool done() const override { return true; }
};

class SingleGroup : public ProcessGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string backend() const override { return "single"; }

  std::shared_ptr<Work> broadcast(Buffer buffer, int root) override {
    check_memory(buffer, Takes::host);
    check_rank("root", root, 1);
    return done();
  }
  std::shared_ptr<Work> all_reduce(Buffer buffer, ReduceOp op) override {
    check_memory(buffer, Takes::host);
    check_reduce(buffer, op);
    return done();
  }
  std::shared_ptr<Work> reduce_scatter(Buffer input, Buffer output, ReduceOp op) override {
    check_memory(input, output, Takes::host);
    check_reduce(input, op);
    check_parts("reduce_scatter", input, output, 1);
    return copy(input, output);
  }
  std::shared_ptr<Work> all_gather(Buffer input, Buffer output) override {
    check_memory(input, output, Takes::host);
    check_parts("all_gather", output, input, 1);
    return copy(input, output);
  }
  std::shared_ptr<Work> all_gather_uneven(Buffer input, Buffer output,
                                          std::span<const std::size_t> counts) override {
    check_memory(input, output, Takes::host);
    check_uneven(input, output, counts, 0, 1);
    return copy(input, output);
  }
  std::shared_ptr<Work> barrier() override { return done(); }
  std::shared_ptr<Work> send(Buffer, int) override { return alone(); }
  std::shared_ptr<Work> receive(Buffer, int) override { return alone(); }
  void abort() override {}

 private:
  static std::shared_ptr<Work> done() { return std::make_shared<DoneWork>(); }
  static std::shared_ptr<Work> copy(const Buffer& from, const Buffer& to) {
    if (from.count > 0) std::memcpy(to.data, from.data, from.bytes());
    return done();
  }
  [[noreturn]] static std::shared_ptr<Work> alone() {
    throw std::invalid_argument("send and receive: there is no other rank in a world of one");
  }
};

}  // namespace

std::unique_ptr<ProcessGroup> make_single_group() { return std::make_unique<SingleGroup>(); }

}  // namespace muster::worker
