// A file that workers' output goes to, and which never stops them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace muster::agent {

/// What cannot be written (a full disk, a folder that went) is dropped and counted. When writing works again, a
/// line at that place says how many bytes are missing. The first loss and, at the end, all of it are told.
class LogFile {
 public:
  /// Gets a sentence for the user.
  using Tell = std::function<void(const std::string&)>;

  LogFile(std::filesystem::path path, Tell tell) : path_(std::move(path)), tell_(std::move(tell)) {}

  /// Makes the folders above it; a file that exists is appended to. That the machine has no descriptor left is
  /// an error; whatever else is in the way costs this file and nothing more.
  Result<void> open();
  void write(std::string_view bytes);
  /// Once nothing more will come.
  void close();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t lost_bytes() const { return lost_bytes_; }

 private:
  Result<void> try_to_open();
  void write_all(std::string_view bytes);
  void mark_the_gap();
  void lose(std::size_t bytes, int error_number);
  void tell_of_loss() const;

  std::filesystem::path path_;
  Tell tell_;
  UniqueFd fd_;
  std::uint64_t lost_bytes_ = 0;
  std::uint64_t missing_here_ = 0;  // since the last byte that was written
  std::uint64_t told_bytes_ = 0;
  int error_number_ = 0;  // of the last loss
  bool inside_line_ = false;
};

}  // namespace muster::agent
