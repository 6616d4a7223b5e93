// A file of JSON lines that other programs read: one object a line, appended and flushed at once, so that a
// run that is killed loses no line that was written and a resumed one goes on below.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>

namespace muster::trainers {

class MetricsFile {
 public:
  /// Writes nothing.
  MetricsFile() = default;
  /// Throws std::invalid_argument that names the path and the errno text.
  explicit MetricsFile(const std::filesystem::path& path);

  bool enabled() const { return file_.is_open(); }

  /// NaN and infinity become null: JSON has neither. Throws std::runtime_error if the line cannot be written.
  void write(const nlohmann::ordered_json& line);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace muster::trainers
