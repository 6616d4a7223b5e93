// A folder in MNIST's layout with few images, made by the test. Class c is a bright stripe at rows 2c..2c+1
// over noise, so that it can be learned in a few steps.
#pragma once

#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainers/tensor/random.hpp"

namespace muster::trainers {

using Bytes = std::vector<std::uint8_t>;

/// A folder that is gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "muster-trainers-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline void append_word(Bytes& bytes, std::uint32_t word) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(word >> shift));
}

inline Bytes idx_bytes(const std::vector<std::uint32_t>& extents, const Bytes& values) {
  Bytes bytes;
  append_word(bytes, 0x0800U | static_cast<std::uint32_t>(extents.size()));
  for (auto extent : extents) append_word(bytes, extent);
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

inline void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

inline void write_gzipped(const std::filesystem::path& path, const Bytes& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error("cannot write " + path.string());
  const int written = gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  if (gzclose(file) != Z_OK || written != static_cast<int>(bytes.size())) {
    throw std::runtime_error("cannot write " + path.string());
  }
}

inline void write_split(const std::filesystem::path& folder, const std::string& prefix, std::uint32_t count) {
  Random random(count, 99);
  Bytes pixels;
  Bytes labels;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(random.below(10));
    labels.push_back(label);
    for (std::uint32_t p = 0; p < 28 * 28; ++p) {
      const bool stripe = p / 28 / 2 == label;
      pixels.push_back(static_cast<std::uint8_t>((stripe ? 150 : 0) + random.below(100)));
    }
  }
  write_gzipped(folder / (prefix + "-images-idx3-ubyte.gz"), idx_bytes({count, 28, 28}, pixels));
  write_gzipped(folder / (prefix + "-labels-idx1-ubyte.gz"), idx_bytes({count}, labels));
}

inline void write_tiny_mnist(const std::filesystem::path& folder, std::uint32_t train, std::uint32_t test) {
  write_split(folder, "train", train);
  write_split(folder, "t10k", test);
}

}  // namespace muster::trainers
