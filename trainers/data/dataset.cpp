#include "trainers/data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "trainers/data/fingerprint.hpp"
#include "trainers/data/idx.hpp"
#include "trainers/tensor/vectorised.hpp"

namespace muster::trainers {
namespace {

namespace fs = std::filesystem;

/// The plain file if there is one, else the gzipped one.
fs::path find_file(const fs::path& folder, const std::string& name) {
  const auto plain = folder / name;
  const auto packed = folder / (name + ".gz");
  std::error_code ignored;  // a file that cannot be seen is reported when it is opened
  if (fs::exists(plain, ignored)) return plain;
  if (fs::exists(packed, ignored)) return packed;
  throw DataError(fmt::format("{}: no such file, nor {}.gz; expected MNIST's four IDX files in this folder",
                              plain.string(), name));
}

void check_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return;
  throw DataError(
      fmt::format("{}: {}; expected a folder with MNIST's four IDX files (Debian's "
                  "dataset-fashion-mnist has them)",
                  folder.string(), error ? error.message() : "not a folder"));
}

/// Division, not multiplication by 1/255: the same bits as PyTorch's ToTensor.
MUSTER_VECTORISED
void normalise(const std::uint8_t* __restrict pixels, float* __restrict out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(pixels[i]) / 255.0F;
}

}  // namespace

ImageDataset ImageDataset::load(const fs::path& folder, Split split) {
  check_folder(folder);
  const std::string prefix = split == Split::train ? "train" : "t10k";
  const auto image_file = find_file(folder, prefix + "-images-idx3-ubyte");
  const auto label_file = find_file(folder, prefix + "-labels-idx1-ubyte");

  auto images = read_idx(image_file, 3);
  if (images.extents[1] != kSide || images.extents[2] != kSide) {
    throw DataError(fmt::format("{}: {}: images of {} x {} pixels, expected {} x {}", image_file.string(),
                                place_in(images, 8), images.extents[1], images.extents[2], kSide, kSide));
  }
  auto labels = read_idx(label_file, 1);
  if (labels.extents[0] != images.extents[0]) {
    throw DataError(fmt::format("{}: {}: {} labels, expected {}, one for each image of {}",
                                label_file.string(), place_in(labels, 4), labels.extents[0],
                                images.extents[0], image_file.filename().string()));
  }
  const auto bad = std::find_if(labels.values.begin(), labels.values.end(),
                                [](std::uint8_t label) { return label >= kClasses; });
  if (bad != labels.values.end()) {
    throw DataError(fmt::format("{}: {}: label {}, expected 0 to {}", label_file.string(),
                                place_in(labels, 8 + (bad - labels.values.begin())), *bad, kClasses - 1));
  }
  ImageDataset dataset;
  dataset.pixels_ = std::move(images.values);
  dataset.labels_ = std::move(labels.values);
  return dataset;
}

std::uint64_t ImageDataset::fingerprint() const {
  return fingerprint_of(std::as_bytes(std::span(labels_)), fingerprint_of(std::as_bytes(std::span(pixels_))));
}

void ImageDataset::gather(std::span<const std::uint32_t> indices, Batch& batch) const {
  batch.images.resize({static_cast<std::int64_t>(indices.size()), kPixels});
  batch.labels.resize(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::size_t index = indices[i];
    assert(index < labels_.size());
    normalise(pixels_.data() + index * kPixels, batch.images.row(static_cast<std::int64_t>(i)), kPixels);
    batch.labels[i] = labels_[index];
  }
}

}  // namespace muster::trainers
