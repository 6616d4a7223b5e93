// One checkpoint on disk, whoever wrote it: its parts compared with their checksums, its rows looked up.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "worker_sdk/src/checkpoint_index.hpp"
#include "worker_sdk/src/files.hpp"

namespace muster::worker {

/// Rows [first_row, first_row + rows) of a tensor, and the memory that they fill.
struct WantedRows {
  const IndexedTensor* tensor = nullptr;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::span<std::byte> into;
};

class CheckpointReader {
 public:
  CheckpointReader(std::filesystem::path checkpoint, CheckpointIndex index);

  const CheckpointIndex& index() const { return index_; }
  /// Nothing for a name that is not in it.
  const IndexedTensor* find(const std::string& name) const;

  /// Throws CheckpointError unless the part has the size and the checksum that the index tells.
  void verify_part(std::size_t part) const;
  /// Opens a part and compares its header with the index. Throws CheckpointError.
  void open_part(std::size_t part);

  /// The parts that hold rows of [first_row, first_row + rows).
  static std::set<std::size_t> parts_of(const IndexedTensor& tensor, std::int64_t first_row,
                                        std::int64_t rows);
  /// Fills the memory with the rows, which must lie in the tensor; opens the parts it needs.
  void read_rows(const WantedRows& wanted);
  /// Of what is wanted, the rows that this part holds. With `verify` the file is read from front to back, once, and
  /// compared with its checksum: CheckpointError if that does not fit, and the memory has been written.
  void read_part(std::size_t part, std::span<const WantedRows> wanted, bool verify);

 private:
  struct Part {
    FileReader file;
    std::unordered_map<std::string, std::uint64_t> offsets;  ///< of each tensor's first byte in the file
  };
  /// Throws CheckpointError unless it has the size that the index tells.
  FileReader file_of(std::size_t part) const;
  Part& opened(std::size_t part);
  /// Where in the file of a part wanted rows lie.
  struct Piece {
    std::uint64_t offset = 0;
    std::span<std::byte> into;
  };
  std::vector<Piece> pieces_of(std::size_t part, const WantedRows& wanted);
  void expect_checksum(std::size_t part, const Checksum& checksum) const;

  std::filesystem::path checkpoint_;
  CheckpointIndex index_;
  std::unordered_map<std::string, const IndexedTensor*> by_name_;
  std::map<std::size_t, Part> parts_;
};

}  // namespace muster::worker
