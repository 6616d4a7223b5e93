// The IDX file format of MNIST and its relatives, gzipped or not.
//
//   file   = magic extent{dimensions} value*
//   magic  = 0x00 0x00 type dimensions      ; type 0x08: unsigned bytes, the only one read here
//   extent = 4 bytes, big-endian
//   value  = 1 byte; as many as the product of the extents, then the file ends
//
// Example, two labels 9 and 0: 00 00 08 01  00 00 00 02  09 00
//
// Limit: 2^30 values. Memory grows with what the file holds, not with what its header claims.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace muster::trainers {

/// The data set is not what it should be: "file: at offset n: what is there, expected what"; of a gzipped file the
/// offset is that of its contents, "at unpacked offset n". Repeating the run will not help, hence an invalid argument.
class DataError : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

struct IdxArray {
  std::vector<std::int64_t> extents;
  std::vector<std::uint8_t> values;
  bool gzipped = false;  ///< as it lies in the file
};

/// "at offset 8", "at unpacked offset 8".
std::string place_in(const IdxArray& array, std::int64_t offset);

/// Throws DataError, at once for what is no file: nobody may ever write to a pipe.
IdxArray read_idx(const std::filesystem::path& path, int dimensions);

}  // namespace muster::trainers
