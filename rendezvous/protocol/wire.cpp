#include "rendezvous/protocol/wire.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster::rendezvous {

bool valid_name(std::string_view name) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return !name.empty() && name.size() <= kMaxNameBytes && std::none_of(name.begin(), name.end(), control);
}

void WireWriter::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

void WireWriter::text(std::string_view value, std::uint32_t max_bytes) {
  value = value.substr(0, max_bytes);
  u32(static_cast<std::uint32_t>(value.size()));
  bytes_.append(value);
}

std::string_view WireReader::take(std::size_t bytes) {
  if (!ok()) return {};
  if (bytes > left()) {
    fail(fmt::format("{} more bytes expected, {} are left", bytes, left()));
    return {};
  }
  const auto taken = input_.substr(at_, bytes);
  at_ += bytes;
  return taken;
}

std::uint64_t WireReader::little_endian(std::size_t bytes) {
  std::uint64_t value = 0;
  const auto taken = take(bytes);
  for (std::size_t i = taken.size(); i > 0; --i)
    value = (value << 8) | static_cast<unsigned char>(taken[i - 1]);
  return value;
}

void WireReader::boolean(bool& out) {
  const auto value = little_endian(1);
  if (value > 1) fail(fmt::format("{} where only 0 and 1 are allowed", value));
  out = value == 1;
}

void WireReader::text(std::string& out, std::uint32_t max_bytes) {
  const auto size = little_endian(4);
  if (size > max_bytes) return fail(fmt::format("a string of {} bytes, {} is the limit", size, max_bytes));
  out = take(size);
}

void WireReader::name(std::string& out) {
  text(out);
  if (ok() && !valid_name(out)) fail("a name that is empty, too long, or has control characters");
}

void WireReader::raw(char* out, std::size_t size) {
  const auto taken = take(size);
  std::copy(taken.begin(), taken.end(), out);
}

void WireReader::fail(std::string reason) {
  if (ok()) wrong_ = fmt::format("at byte {}: {}", at_, reason);
}

bool WireReader::finished() {
  if (ok() && left() > 0) fail(fmt::format("{} bytes too many", left()));
  return ok();
}

}  // namespace muster::rendezvous
