#include "worker_sdk/src/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "muster/worker/checkpoint.hpp"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, int error_number) {
  throw CheckpointError(errno_error(path.string(), error_number).sentence());
}

/// One write or read call moves at most 2 GiB on Linux; smaller pieces also keep the checksum in the cache.
constexpr std::size_t piece_bytes = 1 << 20;
constexpr std::size_t cached_piece_bytes = 256 << 10;

/// The disk begins with so many bytes while the next ones are copied; else it would only begin at the fsync.
constexpr std::uint64_t disk_piece_bytes = 8 << 20;
constexpr std::size_t direct_block_bytes = 4 << 20;

constexpr int max_removals = 100;

}  // namespace

FileWriter::FileWriter(fs::path path, Through through, std::function<void()> between_blocks)
    : path_(std::move(path)), between_blocks_(std::move(between_blocks)) {
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd_) fail(path_, errno);
  // Not asked for by open(): where the file system has none, that fails after the file has been made.
  if (through == Through::direct && ::fcntl(fd_.get(), F_SETFL, O_DIRECT) == 0)
    block_.reset(static_cast<std::byte*>(::operator new[](direct_block_bytes, alignment)));
}

void FileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), piece_bytes));
    checksum_.add(piece);
    if (block_) {
      fill_block(piece);
    } else {
      write_out(piece);
      start_writing_back();
    }
    bytes = bytes.subspan(piece.size());
  }
}

void FileWriter::write_out(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path_, errno);
    size_bytes_ += static_cast<std::size_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void FileWriter::fill_block(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), direct_block_bytes - block_bytes_));
    std::memcpy(block_.get() + block_bytes_, part.data(), part.size());
    block_bytes_ += part.size();
    bytes = bytes.subspan(part.size());
    if (block_bytes_ < direct_block_bytes) continue;
    write_block();
    if (between_blocks_) between_blocks_();
  }
}

void FileWriter::write_block() {
  std::span<const std::byte> rest(block_.get(), std::exchange(block_bytes_, 0));
  if (rest.size() == direct_block_bytes) {
    const ssize_t count = ::write(fd_.get(), rest.data(), rest.size());
    if (count < 0 && errno != EINTR && errno != EINVAL) fail(path_, errno);
    const auto written = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    size_bytes_ += written;
    rest = rest.subspan(written);
  }
  if (rest.empty()) return;
  // The end, which is no whole block; or a disk that wants other sizes, or took a part: the usual way.
  if (::fcntl(fd_.get(), F_SETFL, 0) != 0) fail(path_, errno);
  write_out(rest);
}

void FileWriter::start_writing_back() {
  const auto ready = size_bytes_ - begun_bytes_;
  if (ready < disk_piece_bytes) return;
  // Waits for nothing and reports nothing: a file system that knows no such call, or a failing disk, is seen by fsync.
  (void)::sync_file_range(fd_.get(), static_cast<off_t>(begun_bytes_), static_cast<off_t>(ready),
                          SYNC_FILE_RANGE_WRITE);
  begun_bytes_ = size_bytes_;
  if (between_blocks_) between_blocks_();
}

void FileWriter::commit() {
  if (block_bytes_ > 0) write_block();
  if (::fsync(fd_.get()) != 0) fail(path_, errno);
  if (::close(fd_.release()) != 0) fail(path_, errno);
}

fs::path file_to_write(const fs::path& named) {
  std::error_code error;
  const auto status = fs::status(named, error);
  if (fs::is_directory(status)) fail(named, EISDIR);
  if (fs::is_regular_file(status)) {
    const auto target = fs::canonical(named, error);
    if (error) fail(named, error.value());
    return target;
  }
  if (fs::exists(status)) throw CheckpointError(named.string() + ": not a regular file");
  if (status.type() == fs::file_type::none) fail(named, error.value());
  auto path = named;  // at whose end there is nothing, so that the links have an end
  while (fs::is_symlink(fs::symlink_status(path, error))) {
    const auto target = fs::read_symlink(path, error);
    if (error) fail(path, error.value());
    path = path.parent_path() / target;
  }
  return path;
}

void write_whole_file(const fs::path& named, const std::function<void(FileWriter&)>& write) {
  const auto path = file_to_write(named);
  const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const auto temporary = folder / ("." + path.filename().string() + ".tmp-" + std::to_string(::getpid()));
  remove_tree(temporary);
  try {
    FileWriter file(temporary);
    write(file);
    file.commit();
    rename_path(temporary, path);
  } catch (...) {
    remove_tree(temporary);
    throw;
  }
  sync_folder(folder);
}

FileReader::FileReader(fs::path path) : path_(std::move(path)) {
  fd_.reset(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // a pipe is refused, not waited for
  if (!fd_) fail(path_, errno);
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail(path_, errno);
  if (!S_ISREG(status.st_mode)) throw CheckpointError(path_.string() + ": not a regular file");
  size_bytes_ = static_cast<std::uint64_t>(status.st_size);
}

void FileReader::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const std::size_t wanted = std::min(bytes.size(), piece_bytes);
    const ssize_t count = ::pread(fd_.get(), bytes.data(), wanted, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path_, errno);
    if (count == 0) {
      throw CheckpointError(path_.string() + ": ends at offset " + std::to_string(offset) + ", " +
                            std::to_string(bytes.size()) + " bytes too early");
    }
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void FileReader::read(std::uint64_t offset, std::span<std::byte> bytes, Checksum& checksum) const {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), cached_piece_bytes));
    read(offset, piece);
    checksum.add(piece);
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
  }
}

void FileReader::skim(std::uint64_t offset, std::uint64_t end, Checksum& checksum) const {
  std::vector<std::byte> piece(std::min<std::uint64_t>(cached_piece_bytes, end - offset));
  for (; offset < end; offset += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), end - offset));
    read(offset, piece, checksum);
  }
}

std::string FileReader::checksum() const {
  Checksum checksum;
  skim(0, size_bytes_, checksum);
  return checksum.hex();
}

void sync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail(folder, errno);
  if (::fsync(fd.get()) != 0) fail(folder, errno);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::create_directories(folder, error)) {
    std::error_code none;
    if (const auto link = fs::read_symlink(folder, none); error && !none && !fs::exists(folder, none))
      throw CheckpointError(
          fmt::format("{}: a link to {}, which is not there", folder.string(), link.string()));
    if (error) fail(folder, error.value());
    return;
  }
  const auto parent = fs::absolute(folder).lexically_normal().parent_path();
  sync_folder(parent);
}

void rename_path(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail(to, errno);
}

bool rename_if_there(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return true;
  const int error = errno;
  if (error == ENOENT && !fs::exists(fs::symlink_status(from))) return false;
  fail(to, error);
}

void exchange_folders(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
  // NFS knows no exchange: there `to` is absent for the time between two renames.
  if (errno != EINVAL && errno != ENOSYS) fail(to, errno);
  const fs::path aside = from.string() + "-replaced";
  rename_path(to, aside);
  rename_path(from, to);
  rename_path(aside, from);
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  int tries = max_removals;  // each ends at what somebody else has removed before
  do {
    fs::remove_all(path, error);
  } while (error == std::errc::no_such_file_or_directory && --tries > 0);
  if (error) fail(path, error.value());
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  while (!error && entry != fs::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) fail(folder, error.value());
  return names;
}

}  // namespace muster::worker
