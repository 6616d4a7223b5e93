#include "trainers/training/metrics.hpp"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace muster::trainers {

MetricsFile::MetricsFile(const std::filesystem::path& path) : path_(path) {
  file_.reset(std::fopen(path.c_str(), "ae"));
  if (!file_) {
    throw std::invalid_argument("--metrics-file " + path.string() +
                                ": cannot be opened: " + std::strerror(errno));
  }
  std::setbuf(file_.get(), nullptr);  // a line is one write, and nothing of it is tried again later
}

void MetricsFile::write(const nlohmann::ordered_json& line) {
  if (!enabled()) return;
  const std::string text = line.dump() + "\n";
  std::error_code no_regular_file;
  const auto size_before = std::filesystem::file_size(path_, no_regular_file);
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size()) return;
  error_ = errno;
  // Half a line would spoil the next one; what cannot be cut off either is for its reader to skip.
  std::error_code ignored;
  if (!no_regular_file) std::filesystem::resize_file(path_, size_before, ignored);
}

}  // namespace muster::trainers
