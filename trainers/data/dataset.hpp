// Labelled samples that a training takes batches from; and labelled images in MNIST's layout: 28 x 28 grey pixels,
// labels 0 to 9, four IDX files in one folder. These are read whole into memory, as bytes; a batch is turned into
// numbers in [0, 1] (pixel / 255) when it is asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "trainers/tensor/tensor.hpp"

namespace muster::trainers {

enum class Split : std::uint8_t { train, test };

/// A batch in the caller's memory; reused from step to step.
struct Batch {
  Tensor images;                     ///< (size, features)
  std::vector<std::uint8_t> labels;  ///< size
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual std::int64_t features() const = 0;  ///< numbers in a sample
  /// Of all samples and labels (data/fingerprint.hpp).
  virtual std::uint64_t fingerprint() const = 0;
  /// The samples with these indices, in this order. May be called from several threads.
  virtual void gather(std::span<const std::uint32_t> indices, Batch& batch) const = 0;
};

class ImageDataset final : public Dataset {
 public:
  static constexpr std::int64_t kSide = 28;
  static constexpr std::int64_t kPixels = kSide * kSide;
  static constexpr std::int64_t kClasses = 10;

  /// Reads `train-images-idx3-ubyte` (`t10k-` for test) and its labels; with `.gz` where there is no plain
  /// file. Throws DataError that names the file, the offset and what was expected there.
  static ImageDataset load(const std::filesystem::path& folder, Split split);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::int64_t features() const override { return kPixels; }
  std::uint64_t fingerprint() const override;
  void gather(std::span<const std::uint32_t> indices, Batch& batch) const override;

 private:
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace muster::trainers
