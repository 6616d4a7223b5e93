// A rank's two connections in the ring: it sends to its right neighbour and receives from its left one, at the same time
// and in the thread that runs the collective. docs/design/process-groups.md says why these bytes do not go over Gloo.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>

#include "base/unique_fd.hpp"

namespace muster::worker {

using Deadline = std::chrono::steady_clock::time_point;

/// A wait that did not end well.
class MessageError : public std::runtime_error {
 public:
  MessageError(int peer_rank, bool was_timeout, const std::string& why)
      : std::runtime_error(why), peer(peer_rank), timed_out(was_timeout) {}
  int peer;
  bool timed_out;
};

/// What comes from the left. Both ends know how much, so nothing is sent for 0 bytes.
struct Incoming {
  std::size_t bytes = 0;
  /// With `arrived`: memory for one piece, which is used again and again. Else for all.
  std::span<std::byte> memory;
  /// A piece is there, as long as `memory` or up to the end: it begins at this byte of the whole.
  std::function<void(std::size_t begin, std::span<const std::byte> piece)> arrived = {};
  /// A piece is handed on only when as much has been sent: it is written over what goes out.
  bool over_outgoing = false;
};

/// Used by one thread, but for close().
class RingLink {
 public:
  struct Neighbour {
    int rank = 0;
    UniqueFd fd;  ///< a connected stream that does not block
  };
  RingLink(Neighbour left, Neighbour right);

  /// Ends when all is sent and has come. What carries another slot or another length is not read: it is waited for until
  /// the deadline, as if it had not come. Throws MessageError, after which the link is of no more use.
  void exchange(std::uint64_t slot, std::span<const std::byte> outgoing, const Incoming& incoming,
                Deadline deadline);

  /// From any thread: whoever waits, here or at the other ends, fails.
  void close();

 private:
  /// Before the bytes of each exchange; in the byte order of the machine, as they are.
  struct Header {
    std::uint64_t slot = 0;
    std::uint64_t bytes = 0;
  };
  class Sending;
  class Receiving;

  void wait(const Sending& sending, const Receiving& receiving, Deadline deadline) const;

  Neighbour left_;
  Neighbour right_;
};

}  // namespace muster::worker
