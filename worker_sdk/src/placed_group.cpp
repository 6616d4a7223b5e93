#include "worker_sdk/src/placed_group.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "worker_sdk/src/arguments.hpp"
#include "worker_sdk/src/staged_work.hpp"

namespace muster::worker {
namespace {

using Stages = std::vector<std::shared_ptr<Stage>>;

class PlacedGroup : public ProcessGroup {
 public:
  PlacedGroup(std::unique_ptr<ProcessGroup> host, std::unique_ptr<ProcessGroup> device,
              Accelerator& accelerator)
      : accelerator_(accelerator), host_(std::move(host)), device_(std::move(device)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  std::string backend() const override {
    return device_ ? host_->backend() + "+" + device_->backend() : host_->backend();
  }

  std::shared_ptr<Work> broadcast(Buffer buffer, int root) override {
    check_memory(buffer, Takes::host_and_device);
    if (buffer.place == Place::host) return host_->broadcast(buffer, root);
    if (device_) return device_->broadcast(buffer, root);
    auto stage = root == rank() ? filled(buffer) : std::make_shared<Stage>(buffer);
    return staged(host_->broadcast(stage->host(), root), root == rank() ? nullptr : stage, {stage});
  }
  std::shared_ptr<Work> all_reduce(Buffer buffer, ReduceOp op) override {
    check_memory(buffer, Takes::host_and_device);
    if (buffer.place == Place::host) return host_->all_reduce(buffer, op);
    if (device_) return device_->all_reduce(buffer, op);
    auto stage = filled(buffer);
    return staged(host_->all_reduce(stage->host(), op), stage);
  }
  std::shared_ptr<Work> reduce_scatter(Buffer input, Buffer output, ReduceOp op) override {
    check_memory(input, output, Takes::host_and_device);
    check_same_place(input, output);
    if (input.place == Place::host) return host_->reduce_scatter(input, output, op);
    if (device_) return device_->reduce_scatter(input, output, op);
    auto in = filled(input);
    auto out = std::make_shared<Stage>(output);
    return staged(host_->reduce_scatter(in->host(), out->host(), op), out, {in});
  }
  std::shared_ptr<Work> all_gather(Buffer input, Buffer output) override {
    check_memory(input, output, Takes::host_and_device);
    check_same_place(input, output);
    if (input.place == Place::host) return host_->all_gather(input, output);
    if (device_) return device_->all_gather(input, output);
    auto in = filled(input);
    auto out = std::make_shared<Stage>(output);
    return staged(host_->all_gather(in->host(), out->host()), out, {in});
  }
  std::shared_ptr<Work> all_gather_uneven(Buffer input, Buffer output,
                                          std::span<const std::size_t> counts) override {
    check_memory(input, output, Takes::host_and_device);
    check_same_place(input, output);
    if (input.place == Place::host) return host_->all_gather_uneven(input, output, counts);
    if (device_) return device_->all_gather_uneven(input, output, counts);
    auto in = filled(input);
    auto out = std::make_shared<Stage>(output);
    return staged(host_->all_gather_uneven(in->host(), out->host(), counts), out, {in});
  }
  std::shared_ptr<Work> barrier() override { return host_->barrier(); }
  std::shared_ptr<Work> send(Buffer buffer, int destination) override {
    check_memory(buffer, Takes::host_and_device);
    if (buffer.place == Place::host) return host_->send(buffer, destination);
    auto stage = filled(buffer);
    return staged(host_->send(stage->host(), destination), nullptr, {stage});
  }
  std::shared_ptr<Work> receive(Buffer buffer, int source) override {
    check_memory(buffer, Takes::host_and_device);
    if (buffer.place == Place::host) return host_->receive(buffer, source);
    auto stage = std::make_shared<Stage>(buffer);
    return staged(host_->receive(stage->host(), source), stage);
  }
  void abort() override {
    host_->abort();
    if (device_) device_->abort();
  }

 private:
  static void check_same_place(const Buffer& input, const Buffer& output) {
    if (input.place != output.place)
      throw std::invalid_argument("input and output of a collective must lie in the same memory");
  }

  std::shared_ptr<Stage> filled(const Buffer& buffer) {
    auto stage = std::make_shared<Stage>(buffer);
    stage->copy_out(accelerator_);
    return stage;
  }

  std::shared_ptr<Work> staged(std::shared_ptr<Work> inner, std::shared_ptr<Stage> result,
                               Stages others = {}) {
    return std::make_shared<StagedWork>(accelerator_, std::move(inner), std::move(result), std::move(others));
  }

  Accelerator& accelerator_;
  const std::unique_ptr<ProcessGroup> host_;
  const std::unique_ptr<ProcessGroup> device_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_placed_group(std::unique_ptr<ProcessGroup> host,
                                                std::unique_ptr<ProcessGroup> device,
                                                Accelerator& accelerator) {
  return std::make_unique<PlacedGroup>(std::move(host), std::move(device), accelerator);
}

}  // namespace muster::worker
