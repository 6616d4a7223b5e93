#include "trainers/training/evaluation.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "trainers/tensor/cross_entropy.hpp"

namespace muster::trainers {

namespace {
constexpr std::int64_t kBatchSize = 500;
}

Accuracy evaluate(Module& model, const ImageDataset& dataset, worker::ProcessGroup& group) {
  const auto first = dataset.size() * group.rank() / group.size();
  const auto last = dataset.size() * (group.rank() + 1) / group.size();
  // As many batches on every rank, though their slices differ by a sample: the model's forward may communicate.
  const auto longest = (dataset.size() + group.size() - 1) / group.size();
  const auto batches = (longest + kBatchSize - 1) / kBatchSize;
  Batch batch;
  std::vector<std::uint32_t> indices;
  std::array<std::int64_t, 1> correct{0};
  for (std::int64_t b = 0; b < batches; ++b) {
    const auto begin = first + (last - first) * b / batches;
    const auto end = first + (last - first) * (b + 1) / batches;
    indices.resize(static_cast<std::size_t>(end - begin));
    std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(begin));
    dataset.gather(indices, batch);
    correct[0] += count_correct(model.forward(batch.images), batch.labels);
  }
  group.all_reduce(worker::buffer_of(std::span<std::int64_t>(correct)), worker::ReduceOp::sum)->wait();
  return {.correct = correct[0], .total = dataset.size()};
}

}  // namespace muster::trainers
