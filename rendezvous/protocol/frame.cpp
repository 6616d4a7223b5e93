#include "rendezvous/protocol/frame.hpp"

#include "rendezvous/protocol/wire.hpp"

namespace muster::rendezvous {

std::string frame_bytes(FrameType type, std::string_view payload) {
  WireWriter out;
  out.bytes().reserve(kFrameHeaderBytes + payload.size());
  out.u32(static_cast<std::uint32_t>(payload.size()));
  out.u8(static_cast<std::uint8_t>(type));
  out.raw(payload);
  return std::move(out.bytes());
}

void FrameReader::feed(std::string_view bytes) {
  // A connection is idle most of its life: what was read must not stay allocated.
  if (at_ == held_.size()) {
    if (held_.capacity() > 1024) held_ = std::string();
    held_.clear();
  } else {
    held_.erase(0, at_);
  }
  at_ = 0;
  held_.append(bytes);
}

std::optional<Frame> FrameReader::next() {
  const auto rest = std::string_view(held_).substr(at_);
  if (too_long_ || rest.size() < kFrameHeaderBytes) return std::nullopt;
  WireReader header(rest.substr(0, kFrameHeaderBytes));
  std::uint32_t size = 0;
  std::uint8_t type = 0;
  header.u32(size);
  header.u8(type);
  if (size > max_payload_bytes_) {
    too_long_ = size;
    return std::nullopt;
  }
  if (rest.size() - kFrameHeaderBytes < size) return std::nullopt;
  at_ += kFrameHeaderBytes + size;
  return Frame{static_cast<FrameType>(type), rest.substr(kFrameHeaderBytes, size)};
}

}  // namespace muster::rendezvous
