// The primitive values of the channel's frames and of the journal's records: explicit little-endian, strings
// with their length in front. What they are used for stands in codec.cpp.
//
// A WireReader never reads past its input, never allocates more than its input holds, and remembers the first
// thing that was wrong: decoders read all their fields and ask ok() once at the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::rendezvous {

inline constexpr std::uint32_t kMaxStringBytes = 64 * 1024;
inline constexpr std::uint32_t kMaxLineBytes = 4 * 1024;
inline constexpr std::uint32_t kMaxNameBytes = 256;

/// Names (of jobs, nodes, roles) reach logs and file names: 1 to 256 bytes without control characters.
bool valid_name(std::string_view name);

class WireWriter {
 public:
  void u8(std::uint8_t value) { little_endian(value, 1); }
  void u16(std::uint16_t value) { little_endian(value, 2); }
  void u32(std::uint32_t value) { little_endian(value, 4); }
  void u64(std::uint64_t value) { little_endian(value, 8); }
  void i32(std::int32_t value) { u32(static_cast<std::uint32_t>(value)); }
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  void boolean(bool value) { u8(value ? 1 : 0); }
  /// Longer ones are cut to max_bytes: a text for people may lose its end, a frame may not be refused.
  void text(std::string_view value, std::uint32_t max_bytes = kMaxStringBytes);
  void line(std::string_view value) { text(value, kMaxLineBytes); }
  void name(std::string_view value) { text(value); }
  void raw(std::string_view bytes) { bytes_.append(bytes); }

  std::string& bytes() { return bytes_; }

 private:
  void little_endian(std::uint64_t value, int bytes);
  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view input) : input_(input) {}

  void u8(std::uint8_t& out) { out = static_cast<std::uint8_t>(little_endian(1)); }
  void u16(std::uint16_t& out) { out = static_cast<std::uint16_t>(little_endian(2)); }
  void u32(std::uint32_t& out) { out = static_cast<std::uint32_t>(little_endian(4)); }
  void u64(std::uint64_t& out) { out = little_endian(8); }
  void i32(std::int32_t& out) { out = static_cast<std::int32_t>(little_endian(4)); }
  void i64(std::int64_t& out) { out = static_cast<std::int64_t>(little_endian(8)); }
  void boolean(bool& out);
  void text(std::string& out, std::uint32_t max_bytes = kMaxStringBytes);
  void line(std::string& out) { text(out, kMaxLineBytes); }
  void name(std::string& out);
  void raw(char* out, std::size_t size);

  /// Marks the input as wrong; the first reason stays.
  void fail(std::string reason);
  /// All read, nothing wrong, nothing left over.
  bool finished();
  bool ok() const { return wrong_.empty(); }
  std::size_t left() const { return input_.size() - at_; }
  /// Empty when ok(): "at byte 12: a string of 70000 bytes, 65536 is the limit".
  const std::string& wrong() const { return wrong_; }

 private:
  std::uint64_t little_endian(std::size_t bytes);
  std::string_view take(std::size_t bytes);

  std::string_view input_;
  std::size_t at_ = 0;
  std::string wrong_;
};

}  // namespace muster::rendezvous
