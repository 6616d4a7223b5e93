// The connections of a group, one to every other rank, over Gloo's TCP transport, and the messages on them; and two more
// to the neighbours in the ring, for the bulk of the data.
//
// Two things are done here that the transport leaves out. A peer that goes away while a message is half sent
// or half received would leave its other end waiting until the time-out: a watcher keeps one receive pending
// on every connection, sees it fail, and wakes those who wait for that peer. And a wait names the peer, so
// that errors can.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "worker_sdk/src/key_value_store.hpp"
#include "worker_sdk/src/rank_names.hpp"
#include "worker_sdk/src/ring_link.hpp"

namespace muster::worker {

struct MeshOptions {
  int rank = 0;
  int size = 2;
  RankNames names;
  std::string prefix;          ///< of this group's keys in the store
  std::string address;         ///< numeric, of this host: where the other ranks reach it
  std::string interface_name;  ///< instead of the address, if not empty
  std::string
      setting;  ///< "NAME=VALUE" of an environment variable that all ranks have or none; empty: it is not set
  std::chrono::milliseconds timeout{300'000};  ///< for the whole mesh to stand
};

class Mesh {
 public:
  /// Exchanges addresses through the store and connects. Throws CollectiveError that names the ranks that did
  /// not come, and std::invalid_argument on all ranks, as soon as all have come, if only some have the setting.
  Mesh(const MeshOptions& options, KeyValueStore& store);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// To the right neighbour in the ring and from the left one, see RingLink::exchange(). For one thread at a time.
  void exchange(std::uint64_t slot, std::span<const std::byte> outgoing, const Incoming& incoming,
                Deadline deadline);

  /// Whose connection is closed.
  std::vector<int> closed_peers();
  /// Closes every connection: whoever waits, here or at the other ends, fails.
  void close();

 private:
  friend class MessageBuffer;
  class Context;

  void watch();
  bool lost(int peer) const;
  void await_loss(int peer);
  void close_messages();
  void enter(gloo::transport::UnboundBuffer* buffer);
  void leave(gloo::transport::UnboundBuffer* buffer);

  const int rank_;
  const int size_;
  std::shared_ptr<Context> context_;
  mutable std::mutex mutex_;
  std::set<gloo::transport::UnboundBuffer*> buffers_;
  std::set<int> lost_;
  std::condition_variable lost_more_;
  std::unique_ptr<gloo::transport::UnboundBuffer> watched_;
  bool stopping_ = false;
  std::optional<RingLink> ring_;
  std::thread watcher_;
};

/// Memory that messages are sent from and received into. Messages of one slot between two ranks arrive in the
/// order in which they were sent. Every message that was begun must be waited for, unless something failed.
class MessageBuffer {
 public:
  MessageBuffer(Mesh& mesh, void* data, std::size_t bytes);
  ~MessageBuffer();
  MessageBuffer(const MessageBuffer&) = delete;
  MessageBuffer& operator=(const MessageBuffer&) = delete;

  void send(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes);
  void receive(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes);
  /// Each waits for one message. Throws MessageError.
  void wait_sent(int peer, Deadline deadline);
  void wait_received(int peer, Deadline deadline);

 private:
  using Wait = bool (gloo::transport::UnboundBuffer::*)(int*, std::chrono::milliseconds);
  void wait(Wait wait_once, int peer, Deadline deadline);

  Mesh& mesh_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  int unfinished_ = 0;  ///< messages that were begun and not waited for
};

}  // namespace muster::worker
