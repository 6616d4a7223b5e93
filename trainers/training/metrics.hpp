// A file of JSON lines that other programs read: one object a line, appended and written at once, so that a
// run that is killed loses no line that was written and a resumed one goes on below.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace muster::trainers {

class MetricsFile {
 public:
  /// Writes nothing.
  MetricsFile() = default;
  /// Throws std::invalid_argument that names the path and the errno text.
  explicit MetricsFile(const std::filesystem::path& path);

  bool enabled() const { return file_ != nullptr && error_ == 0; }

  /// NaN and infinity become null: JSON has neither. After a line that could not be written (a full disk) nothing more
  /// is: error() has the errno then, and a regular file ends with its last whole line.
  void write(const nlohmann::ordered_json& line);
  int error() const { return error_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
  int error_ = 0;
};

}  // namespace muster::trainers
