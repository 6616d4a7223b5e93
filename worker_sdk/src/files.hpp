// Files and folders that must be on disk when a call returns. Every failed system call throws CheckpointError
// "path: No space left on device (ENOSPC)".
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "worker_sdk/src/checksum.hpp"

namespace muster::worker {

/// A new file (it must not exist yet), written from front to back.
class FileWriter {
 public:
  enum class Through : std::uint8_t {
    page_cache,  ///< the next reader here finds it in memory
    /// Straight to the disk where the file system can: the kernel copies nothing and has nothing to write back later,
    /// which would be done at the cost of those that compute.
    direct
  };
  /// `between_blocks` is called when a few MiB have gone to the disk and more may follow.
  explicit FileWriter(std::filesystem::path path, Through through = Through::page_cache,
                      std::function<void()> between_blocks = {});
  void write(std::span<const std::byte> bytes);
  /// Flushes to disk and closes. A file whose writer went away without it counts as not written.
  void commit();

  std::uint64_t size_bytes() const { return size_bytes_; }
  std::string checksum() const { return checksum_.hex(); }

 private:
  struct Free {
    void operator()(std::byte* block) const { ::operator delete[](block, alignment); }
  };
  static constexpr std::align_val_t alignment{4096};  ///< enough for every disk's direct writes

  void write_out(std::span<const std::byte> bytes);
  void fill_block(std::span<const std::byte> bytes);
  void write_block();
  void start_writing_back();

  std::filesystem::path path_;
  UniqueFd fd_;
  std::function<void()> between_blocks_;
  std::unique_ptr<std::byte[], Free> block_;  ///< of direct writing; null: through the page cache
  std::size_t block_bytes_ = 0;               ///< not written yet
  std::uint64_t size_bytes_ = 0;
  std::uint64_t begun_bytes_ = 0;  ///< that the disk was told to begin with
  Checksum checksum_;
};

/// The file that is written when `named` is to be: at the end of all links, also of one whose file is not there yet.
/// Throws CheckpointError for a folder, a device, a pipe or a socket, whose place a file must not take.
std::filesystem::path file_to_write(const std::filesystem::path& named);

/// A file that is there whole or not at all: `write` fills it under a temporary name, then it gets that of
/// file_to_write().
void write_whole_file(const std::filesystem::path& path, const std::function<void(FileWriter&)>& write);

class FileReader {
 public:
  explicit FileReader(std::filesystem::path path);
  std::uint64_t size_bytes() const { return size_bytes_; }
  /// Fills `bytes` from `offset` on; a file that ends before that is an error.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// As read(), and adds them to the checksum while they are still in the processor's cache.
  void read(std::uint64_t offset, std::span<std::byte> bytes, Checksum& checksum) const;
  /// Adds [offset, end) to the checksum.
  void skim(std::uint64_t offset, std::uint64_t end, Checksum& checksum) const;
  /// Of the whole file.
  std::string checksum() const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  std::uint64_t size_bytes_ = 0;
};

/// Flushes the folder's entries: a rename in it is durable only after this.
void sync_folder(const std::filesystem::path& folder);
/// With its parents; durable.
void make_folder(const std::filesystem::path& folder);
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
/// False if there is no `from`.
bool rename_if_there(const std::filesystem::path& from, const std::filesystem::path& to);
/// Puts the folder `from` in the place of the folder `to`, which exists, and the other way round: in one step
/// where the file system can.
void exchange_folders(const std::filesystem::path& from, const std::filesystem::path& to);
/// Others may be removing it too.
void remove_tree(const std::filesystem::path& path);
/// The names in a folder, in no order. Nothing if there is no such folder.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace muster::worker
