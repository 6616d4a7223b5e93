#include "agent/logs/log_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace muster::agent {

Result<void> LogFile::open() {
  const auto opened = try_to_open();
  if (opened) return {};
  const int error = opened.error().error_number;
  if (error == EMFILE || error == ENFILE) return opened.error();
  error_number_ = error;
  tell_(fmt::format("{}; the job goes on, this log is lost", opened.error().sentence()));
  return {};
}

Result<void> LogFile::try_to_open() {
  std::error_code error;
  std::filesystem::create_directories(path_.parent_path(), error);
  if (error) return errno_error(path_.parent_path().string(), error.value());
  // O_NONBLOCK is for what is no file after all: a pipe without a reader would hold the agent for ever.
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644));
  if (!fd_) return errno_error(path_.string(), errno);
  return {};
}

void LogFile::write(std::string_view bytes) {
  if (bytes.empty()) return;
  if (!fd_) return lose(bytes.size(), error_number_);
  if (missing_here_ > 0) mark_the_gap();
  if (missing_here_ > 0) return lose(bytes.size(), error_number_);
  write_all(bytes);
}

// What is left when it fails is lost.
void LogFile::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return lose(bytes.size(), errno);
    inside_line_ = bytes[static_cast<std::size_t>(written) - 1] != '\n';
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Is there room again? The note is the question.
void LogFile::mark_the_gap() {
  const std::string note = fmt::format("{}muster: {} bytes are missing here: {}\n", inside_line_ ? "\n" : "",
                                       missing_here_, errno_text(error_number_));
  const ssize_t written = ::write(fd_.get(), note.data(), note.size());
  if (written == static_cast<ssize_t>(note.size())) {
    missing_here_ = 0;
    inside_line_ = false;
  } else if (written > 0) {
    inside_line_ = true;  // half a note; the next one begins on a line of its own
  }
}

void LogFile::lose(std::size_t bytes, int error_number) {
  const bool first = lost_bytes_ == 0;
  lost_bytes_ += bytes;
  missing_here_ += bytes;
  if (error_number != 0) error_number_ = error_number;
  if (!first || !fd_) return;  // a file that never opened was told of then
  tell_of_loss();
  told_bytes_ = lost_bytes_;
}

void LogFile::close() {
  const bool was_open = static_cast<bool>(fd_);
  if (was_open && missing_here_ > 0) mark_the_gap();
  if (was_open && ::close(fd_.release()) != 0) {
    error_number_ = errno;
    tell_(fmt::format("{}: {}; its last lines may be lost", path_.string(), errno_text(errno)));
  }
  if (lost_bytes_ > told_bytes_) tell_of_loss();
  told_bytes_ = lost_bytes_;
}

void LogFile::tell_of_loss() const {
  tell_(fmt::format("{}: {}; the job goes on, {} bytes of this log are lost so far", path_.string(),
                    errno_text(error_number_), lost_bytes_));
}

}  // namespace muster::agent
