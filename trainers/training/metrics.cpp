#include "trainers/training/metrics.hpp"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace muster::trainers {

MetricsFile::MetricsFile(const std::filesystem::path& path) : path_(path) {
  errno = 0;
  file_.open(path, std::ios::app);
  if (!file_) {
    throw std::invalid_argument("--metrics-file " + path.string() +
                                ": cannot be opened: " + std::strerror(errno));
  }
}

void MetricsFile::write(const nlohmann::ordered_json& line) {
  if (!enabled()) return;
  errno = 0;
  file_ << line.dump() + "\n" << std::flush;
  if (!file_) throw std::runtime_error(path_.string() + ": cannot be written: " + std::strerror(errno));
}

}  // namespace muster::trainers
