#include "worker_sdk/src/ring_link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace muster::worker {
namespace {

/// Sent and received in turns of so many bytes, so that neither direction waits for the other.
constexpr std::size_t turn_bytes = 1 << 20;

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

MessageError broken(int peer, int error_number) { return {peer, false, errno_text(error_number)}; }

}  // namespace

class RingLink::Sending {
 public:
  Sending(std::uint64_t slot, std::span<const std::byte> bytes)
      : header_{slot, bytes.size()},
        bytes_(bytes),
        left_(bytes.empty() ? 0 : sizeof header_ + bytes.size()) {}

  bool done() const { return left_ == 0; }
  /// Of the bytes, without the header.
  std::size_t sent() const { return bytes_.size() - std::min(left_, bytes_.size()); }

  /// False if there is no room.
  bool some(const Neighbour& to) {
    const std::size_t of_header = left_ > bytes_.size() ? left_ - bytes_.size() : 0;
    auto* header = reinterpret_cast<std::byte*>(&header_) + sizeof header_ - of_header;
    auto* bytes = const_cast<std::byte*>(bytes_.data()) + sent();  // sendmsg() only reads
    std::array<iovec, 2> parts{iovec{header, of_header},
                               iovec{bytes, std::min(bytes_.size() - sent(), turn_bytes)}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t count = ::sendmsg(to.fd.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && would_block()) return false;
    if (count < 0) throw broken(to.rank, errno);
    left_ -= static_cast<std::size_t>(count);
    return true;
  }

 private:
  Header header_;
  std::span<const std::byte> bytes_;
  std::size_t left_;
};

class RingLink::Receiving {
 public:
  Receiving(std::uint64_t slot, const Incoming& incoming) : slot_(slot), incoming_(incoming) {}

  bool done() const { return incoming_.bytes == 0 || handed_on_ == incoming_.bytes; }
  /// It is another message that comes.
  bool is_stranger() const {
    return header_bytes_ == sizeof header_ && (header_.slot != slot_ || header_.bytes != incoming_.bytes);
  }
  bool can_read() const {
    return !is_stranger() && (header_bytes_ < sizeof header_ || piece_bytes_ < piece_size());
  }

  /// False if nothing is there, or there is nowhere to put it yet.
  bool some(const Neighbour& from, const Sending& sending) {
    bool moved = can_read() && read(from);
    if (header_bytes_ == sizeof header_ && !is_stranger()) moved = hand_on(sending) || moved;
    return moved;
  }

 private:
  std::size_t piece_size() const { return std::min(incoming_.bytes - handed_on_, incoming_.memory.size()); }

  bool read(const Neighbour& from) {
    const bool in_header = header_bytes_ < sizeof header_;
    auto* into = in_header ? reinterpret_cast<std::byte*>(&header_) + header_bytes_
                           : incoming_.memory.data() + piece_bytes_;
    const std::size_t room = in_header ? sizeof header_ - header_bytes_ : piece_size() - piece_bytes_;
    const ssize_t count = ::recv(from.fd.get(), into, std::min(room, turn_bytes), MSG_DONTWAIT);
    if (count < 0 && would_block()) return false;
    if (count < 0) throw broken(from.rank, errno);
    if (count == 0) throw MessageError(from.rank, false, "the connection was closed");
    (in_header ? header_bytes_ : piece_bytes_) += static_cast<std::size_t>(count);
    return true;
  }

  bool hand_on(const Sending& sending) {
    if (done() || piece_bytes_ < piece_size()) return false;
    if (incoming_.over_outgoing && !sending.done() && sending.sent() < handed_on_ + piece_bytes_)
      return false;
    if (incoming_.arrived) incoming_.arrived(handed_on_, incoming_.memory.first(piece_bytes_));
    handed_on_ += std::exchange(piece_bytes_, 0);
    return true;
  }

  const std::uint64_t slot_;
  const Incoming& incoming_;
  Header header_;
  std::size_t header_bytes_ = 0;
  std::size_t piece_bytes_ = 0;
  std::size_t handed_on_ = 0;
};

RingLink::RingLink(Neighbour left, Neighbour right) : left_(std::move(left)), right_(std::move(right)) {}

void RingLink::exchange(std::uint64_t slot, std::span<const std::byte> outgoing, const Incoming& incoming,
                        Deadline deadline) {
  Sending sending(slot, outgoing);
  Receiving receiving(slot, incoming);
  while (!sending.done() || !receiving.done()) {
    bool moved = !sending.done() && sending.some(right_);
    if (!receiving.done()) moved = receiving.some(left_, sending) || moved;
    if (!moved) wait(sending, receiving, deadline);
  }
}

/// The right neighbour may be gone as soon as it has all that it needs. POLLHUP and POLLERR are told of in any case; the
/// next turn then meets the error.
void RingLink::wait(const Sending& sending, const Receiving& receiving, Deadline deadline) const {
  std::array<pollfd, 2> ends{};
  ends[0] = {sending.done() ? -1 : right_.fd.get(), POLLOUT, 0};
  const bool stranger = receiving.is_stranger();
  const bool listens = !receiving.done() && (stranger || receiving.can_read());
  ends[1] = {listens ? left_.fd.get() : -1, static_cast<short>(stranger ? POLLRDHUP : POLLIN), 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  const int peer = receiving.done() ? right_.rank : left_.rank;
  if (left.count() <= 0) throw MessageError(peer, true, "timed out");
  const auto limit = static_cast<int>(std::min<std::chrono::milliseconds::rep>(left.count(), INT_MAX));
  if (::poll(ends.data(), ends.size(), limit) < 0 && errno != EINTR) throw broken(peer, errno);
  if (stranger && ends[1].revents != 0) throw MessageError(left_.rank, false, "the connection was closed");
}

void RingLink::close() {
  for (const Neighbour* neighbour : {&left_, &right_})
    static_cast<void>(::shutdown(neighbour->fd.get(), SHUT_RDWR));
}

}  // namespace muster::worker
