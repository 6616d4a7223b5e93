// Cuts a byte stream into frames. The grammar stands in codec.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::rendezvous {

inline constexpr std::size_t kFrameHeaderBytes = 5;
/// Before a peer has proved who it is, it may not make the other side hold more than this.
inline constexpr std::uint32_t kMaxHandshakePayloadBytes = 16 * 1024;
/// The largest honest message is the end of a job: a failure with its last lines, and a line for each
/// restart.
inline constexpr std::uint32_t kMaxPayloadBytes = 2 * 1024 * 1024;
/// An operator's answer may list every node of every job.
inline constexpr std::uint32_t kMaxReplyPayloadBytes = 64 * 1024 * 1024;

/// Never renumbered; a number that went out of use is not given again.
enum class FrameType : std::uint8_t {
  hello = 1,
  challenge = 2,
  proof = 3,
  welcome = 4,
  refused = 5,
  heartbeat = 6,  ///< both ways

  join = 16,
  resume = 17,
  worker_failed = 18,
  workers_safe = 19,
  workers_stopped = 20,
  workers_succeeded = 21,
  progress = 22,
  leave = 23,
  own_addresses = 24,

  waiting = 32,
  assignment = 33,
  drain = 34,
  stop_workers = 35,
  job_ended = 36,
  store_clients = 37,
  inject = 38,

  operator_request = 48,
  operator_reply = 49
};

struct Frame {
  FrameType type{};
  std::string_view payload;  ///< valid until the reader is used again
};

/// Header and payload, ready to be sent.
std::string frame_bytes(FrameType type, std::string_view payload);

/// Holds at most one incomplete frame, and of it only what has arrived.
class FrameReader {
 public:
  explicit FrameReader(std::uint32_t max_payload_bytes) : max_payload_bytes_(max_payload_bytes) {}

  void allow_payload_bytes(std::uint32_t max_payload_bytes) { max_payload_bytes_ = max_payload_bytes; }
  void feed(std::string_view bytes);
  /// The next whole frame, if there is one. Nothing comes after too_long().
  std::optional<Frame> next();
  /// A header announced more than is allowed: this many bytes. The stream cannot be read any further.
  std::optional<std::uint32_t> too_long() const { return too_long_; }
  std::size_t held_bytes() const { return held_.size() - at_; }

 private:
  std::uint32_t max_payload_bytes_;
  std::string held_;
  std::size_t at_ = 0;
  std::optional<std::uint32_t> too_long_;
};

}  // namespace muster::rendezvous
