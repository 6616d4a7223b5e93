#include "trainers/training/evaluation.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/on_device.hpp"

namespace muster::trainers {

namespace {

constexpr std::int64_t kBatchSize = 500;

/// Calls `visit(logits, labels)` for each batch of this rank's slice.
void for_each_batch(Module& model, const Dataset& dataset, const worker::ProcessGroup& group, Device& device,
                    const auto& visit) {
  const auto first = dataset.size() * group.rank() / group.size();
  const auto last = dataset.size() * (group.rank() + 1) / group.size();
  // As many batches on every rank, though their slices differ by a sample: the model's forward may communicate.
  const auto longest = (dataset.size() + group.size() - 1) / group.size();
  const auto batches = (longest + kBatchSize - 1) / kBatchSize;
  Batch batch;
  Tensor moved;
  std::vector<std::uint32_t> indices;
  for (std::int64_t b = 0; b < batches; ++b) {
    const auto begin = first + (last - first) * b / batches;
    const auto end = first + (last - first) * (b + 1) / batches;
    indices.resize(static_cast<std::size_t>(end - begin));
    std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(begin));
    dataset.gather(indices, batch);
    visit(model.forward(on_device(device, batch.images, moved)), batch.labels);
  }
}

}  // namespace

Accuracy evaluate(Module& model, const Dataset& dataset, worker::ProcessGroup& group, Device& device) {
  std::array<std::int64_t, 1> correct{0};
  for_each_batch(model, dataset, group, device,
                 [&](const Tensor& logits, std::span<const std::uint8_t> labels) {
                   correct[0] += count_correct(logits, labels);
                 });
  group.all_reduce(worker::buffer_of(std::span<std::int64_t>(correct)), worker::ReduceOp::sum)->wait();
  return {.correct = correct[0], .total = dataset.size()};
}

double mean_loss(Module& model, const Dataset& dataset, worker::ProcessGroup& group, Device& device) {
  std::array<double, 1> sum{0};
  Tensor unused;
  for_each_batch(
      model, dataset, group, device, [&](const Tensor& logits, std::span<const std::uint8_t> labels) {
        sum[0] += softmax_cross_entropy(logits, labels, unused) * static_cast<double>(labels.size());
      });
  group.all_reduce(worker::buffer_of(std::span<double>(sum)), worker::ReduceOp::sum)->wait();
  return sum[0] / static_cast<double>(dataset.size());
}

}  // namespace muster::trainers
