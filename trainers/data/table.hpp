// Labelled rows of numbers: a data set that fits into one safetensors file, or that is made up.
#pragma once

#include <filesystem>

#include "trainers/data/dataset.hpp"

namespace muster::trainers {

class TableDataset final : public Dataset {
 public:
  /// `labels.size()` rows of `features`, one after the other.
  TableDataset(std::vector<float> values, std::vector<std::uint8_t> labels, std::int64_t features);

  /// Uniform numbers with mean 0 and variance 1, and labels that have nothing to do with them: what there is to learn is
  /// to remember.
  static TableDataset random(std::int64_t rows, std::int64_t features, std::int64_t classes,
                             std::uint64_t seed);
  /// Tensors "x" (rows, features) F32 and "y" (rows) I64 or U8. Throws DataError that names the file and what is wrong.
  static TableDataset load(const std::filesystem::path& file, std::int64_t features, std::int64_t classes);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::int64_t features() const override { return features_; }
  std::uint64_t fingerprint() const override;
  void gather(std::span<const std::uint32_t> indices, Batch& batch) const override;

 private:
  std::vector<float> values_;
  std::vector<std::uint8_t> labels_;
  std::int64_t features_;
};

}  // namespace muster::trainers
