#include "trainers/training/metrics.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace muster::trainers {

MetricsFile::MetricsFile(const std::filesystem::path& path) : path_(path) {
  // A pipe that nobody reads is an error (ENXIO), not waited for; one that is read is written as any file.
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd >= 0) ::fcntl(fd, F_SETFL, O_APPEND);
  file_.reset(fd >= 0 ? ::fdopen(fd, "a") : nullptr);
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
