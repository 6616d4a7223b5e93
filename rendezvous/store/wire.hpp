// The primitives of the store protocol: integers in the host's own byte order and width (as PyTorch sends
// them), byte strings behind a 64-bit length.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace muster::rendezvous::wire {

template <class Integer>
void put(std::string& out, Integer number) {
  char raw[sizeof(Integer)];
  std::memcpy(raw, &number, sizeof raw);
  out.append(raw, sizeof raw);
}

inline void put_u8(std::string& out, std::uint8_t number) { out.push_back(static_cast<char>(number)); }
inline void put_u64(std::string& out, std::uint64_t number) { put(out, number); }
inline void put_i64(std::string& out, std::int64_t number) { put(out, number); }

inline void put_bytes(std::string& out, std::string_view bytes) {
  put_u64(out, bytes.size());
  out.append(bytes);
}

/// The caller has checked that `bytes` reaches far enough.
template <class Integer>
Integer get(std::string_view bytes, std::size_t offset) {
  Integer number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

}  // namespace muster::rendezvous::wire
