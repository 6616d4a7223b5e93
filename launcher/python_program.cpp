#include "launcher/python_program.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace muster::launcher {

bool is_python_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) &&
         std::filesystem::is_regular_file(std::filesystem::path(path) / "__main__.py", error);
}

// An archive ends with a record of 22 bytes that begins with "PK\5\6", and a comment of up to 64 KiB. A script may stand
// before it.
bool is_python_archive(const std::string& path) {
  constexpr std::streamoff kMaxEnd = 22 + 65535;
  std::error_code error;
  if ((!path.ends_with(".pyz") && !path.ends_with(".zip")) || !std::filesystem::is_regular_file(path, error))
    return false;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return false;
  const auto size = std::min<std::streamoff>(file.tellg(), kMaxEnd);
  file.seekg(-size, std::ios::end);
  std::string end(static_cast<std::size_t>(size), '\0');
  file.read(end.data(), size);
  return file && end.find("PK\5\6") != std::string::npos;
}

}  // namespace muster::launcher
