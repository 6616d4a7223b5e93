#include "trainers/data/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "muster/worker/safetensors.hpp"
#include "trainers/data/fingerprint.hpp"
#include "trainers/data/idx.hpp"
#include "trainers/tensor/random.hpp"

namespace muster::trainers {
namespace {

using worker::ElementType;
using worker::TensorRef;

constexpr std::uint64_t kValueStream = std::uint64_t{1} << 40;

const TensorRef& tensor_of(const std::filesystem::path& path, const worker::SafetensorsFile& file,
                           const char* name) {
  for (const auto& tensor : file.tensors)
    if (tensor.name == name) return tensor;
  throw DataError(fmt::format("{}: no tensor '{}'; expected x (rows, features) F32 and y (rows) I64 or U8",
                              path.string(), name));
}

std::vector<std::uint8_t> labels_of(const std::filesystem::path& path, const TensorRef& tensor,
                                    std::int64_t classes) {
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < tensor.count(); ++i) {
    std::int64_t label = 0;
    if (tensor.type == ElementType::i64) {
      std::memcpy(&label, static_cast<const std::int64_t*>(tensor.data) + i, sizeof(label));
    } else if (tensor.type == ElementType::u8) {
      label = static_cast<const std::uint8_t*>(tensor.data)[i];
    } else {
      throw DataError(fmt::format("{}: y is {}, expected I64 or U8", path.string(), name_of(tensor.type)));
    }
    if (label < 0 || label >= classes)
      throw DataError(fmt::format("{}: y[{}] is {}, expected 0 to {}", path.string(), i, label, classes - 1));
    labels.push_back(static_cast<std::uint8_t>(label));
  }
  return labels;
}

}  // namespace

TableDataset::TableDataset(std::vector<float> values, std::vector<std::uint8_t> labels, std::int64_t features)
    : values_(std::move(values)), labels_(std::move(labels)), features_(features) {}

TableDataset TableDataset::random(std::int64_t rows, std::int64_t features, std::int64_t classes,
                                  std::uint64_t seed) {
  Random random(seed, kValueStream);
  const float bound = std::sqrt(3.0F);
  std::vector<float> values(static_cast<std::size_t>(rows * features));
  for (auto& value : values) value = random.uniform(-bound, bound);
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(rows));
  for (auto& label : labels)
    label = static_cast<std::uint8_t>(random.below(static_cast<std::uint64_t>(classes)));
  return {std::move(values), std::move(labels), features};
}

TableDataset TableDataset::load(const std::filesystem::path& path, std::int64_t features,
                                std::int64_t classes) {
  worker::SafetensorsFile file;
  try {
    file = worker::read_safetensors(path);
  } catch (const worker::CheckpointError& error) {
    throw DataError(error.what());
  }
  const auto& x = tensor_of(path, file, "x");
  const auto& y = tensor_of(path, file, "y");
  if (x.type != ElementType::f32 || x.shape.size() != 2 || x.shape[1] != features)
    throw DataError(fmt::format("{}: x is {} {}, expected F32 (rows, {})", path.string(), name_of(x.type),
                                text_of(x.shape), features));
  if (y.shape != Shape{x.shape[0]})
    throw DataError(
        fmt::format("{}: y has shape {}, expected ({})", path.string(), text_of(y.shape), x.shape[0]));
  std::vector<float> values(x.count());
  if (!values.empty()) std::memcpy(values.data(), x.data, x.bytes());
  return {std::move(values), labels_of(path, y, classes), features};
}

std::uint64_t TableDataset::fingerprint() const {
  return fingerprint_of(std::as_bytes(std::span(labels_)), fingerprint_of(std::as_bytes(std::span(values_))));
}

void TableDataset::gather(std::span<const std::uint32_t> indices, Batch& batch) const {
  batch.images.resize({static_cast<std::int64_t>(indices.size()), features_});
  batch.labels.resize(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::copy_n(values_.data() + static_cast<std::int64_t>(indices[i]) * features_, features_,
                batch.images.row(static_cast<std::int64_t>(i)));
    batch.labels[i] = labels_[indices[i]];
  }
}

}  // namespace muster::trainers
