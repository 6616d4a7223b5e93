#include "trainers/data/idx.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

namespace muster::trainers {
namespace {

constexpr std::int64_t kMaxValues = std::int64_t{1} << 30;
constexpr std::size_t kChunkBytes = 1 << 20;
constexpr unsigned kUnsignedBytes = 0x08;

std::string place_text(bool gzipped, std::int64_t offset) {
  return fmt::format("at {}offset {}", gzipped ? "unpacked " : "", offset);
}

/// What is no file: a word for it, else nullptr.
const char* kind_of_no_file(const std::filesystem::path& path) {
  std::error_code ignored;  // what cannot be looked at is reported when it is opened
  switch (std::filesystem::status(path, ignored).type()) {
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::fifo:
      return "a named pipe (FIFO)";
    case std::filesystem::file_type::character:
      return "a character device";
    case std::filesystem::file_type::block:
      return "a block device";
    case std::filesystem::file_type::socket:
      return "a socket";
    default:
      return nullptr;
  }
}

/// Reads a file from its start to its end, unpacking it if need be (zlib passes plain files through).
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), file_(nullptr, gzclose) {
    if (const char* kind = kind_of_no_file(path))
      throw DataError(fmt::format("{}: this is {}, expected a file", path.string(), kind));
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) {
      throw DataError(fmt::format("{}: {}", path.string(), std::strerror(errno == 0 ? ENOMEM : errno)));
    }
    gzbuffer(file_.get(), 1 << 18);
  }

  /// Up to `into.size()` bytes; fewer at the end of the file only.
  std::size_t read(std::span<std::uint8_t> into) {
    const int got = gzread(file_.get(), into.data(), static_cast<unsigned>(into.size()));
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) fail(std::strerror(errno));
    if (code == Z_BUF_ERROR) {
      throw DataError(
          fmt::format("{}: at offset {}: the compressed data is cut off here, expected its end mark",
                      path_.string(), std::filesystem::file_size(path_)));
    }
    if (got < 0 || code != Z_OK) fail(fmt::format("the compressed data is damaged ({})", text));
    offset_ += got;
    return static_cast<std::size_t>(got);
  }

  std::int64_t offset() const { return offset_; }
  [[noreturn]] void fail(const std::string& why) const { fail_at(offset_, why); }
  [[noreturn]] void fail_at(std::int64_t offset, const std::string& why) const {
    throw DataError(fmt::format("{}: {}: {}", path_.string(), place_text(gzipped(), offset), why));
  }
  bool gzipped() const { return gzdirect(file_.get()) == 0; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::int64_t offset_ = 0;
};

std::uint32_t read_word(Reader& reader, const char* expected) {
  std::array<std::uint8_t, 4> bytes{};
  if (reader.read(bytes) != bytes.size()) reader.fail(fmt::format("the file ends, expected {}", expected));
  return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 |
         static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3];
}

std::vector<std::int64_t> read_header(Reader& reader, int dimensions) {
  const std::uint32_t expected = kUnsignedBytes << 8 | static_cast<unsigned>(dimensions);
  const auto magic = read_word(reader, "a magic number of 4 bytes");
  if (magic != expected) {
    reader.fail_at(0, fmt::format("magic number {:#010x}, expected {:#010x} (unsigned bytes, {} dimension{})",
                                  magic, expected, dimensions, dimensions == 1 ? "" : "s"));
  }
  std::vector<std::int64_t> extents;
  std::int64_t count = 1;
  for (int d = 0; d < dimensions; ++d) {
    extents.push_back(read_word(reader, "an extent of 4 bytes"));
    if (extents.back() == 0 || extents.back() > kMaxValues / count) {
      reader.fail_at(reader.offset() - 4, fmt::format("extent {}, expected 1 or more and at most {} values "
                                                      "in all",
                                                      extents.back(), kMaxValues));
    }
    count *= extents.back();
  }
  return extents;
}

}  // namespace

std::string place_in(const IdxArray& array, std::int64_t offset) { return place_text(array.gzipped, offset); }

IdxArray read_idx(const std::filesystem::path& path, int dimensions) {
  Reader reader(path);
  IdxArray array;
  array.extents = read_header(reader, dimensions);
  array.gzipped = reader.gzipped();
  std::size_t count = 1;
  for (auto extent : array.extents) count *= static_cast<std::size_t>(extent);
  const auto start = reader.offset();
  while (array.values.size() < count) {
    const auto filled = array.values.size();
    const auto wanted = std::min(kChunkBytes, count - filled);
    array.values.resize(filled + wanted);
    if (reader.read(std::span(array.values).subspan(filled)) != wanted) {
      reader.fail(
          fmt::format("the file ends, expected {} values of 1 byte from offset {} on ({} by its "
                      "header)",
                      count, start, fmt::join(array.extents, " x ")));
    }
  }
  // One byte more: sees data that should not be there, and makes zlib compare the checksum at the end.
  std::array<std::uint8_t, 1> extra{};
  if (reader.read(extra) != 0) {
    reader.fail_at(reader.offset() - 1,
                   fmt::format("more data, expected the end of the file after {} values", count));
  }
  return array;
}

}  // namespace muster::trainers
