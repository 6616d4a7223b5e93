#include "worker_sdk/src/mesh.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <stdexcept>

#include "muster/worker/process_group.hpp"
#include "worker_sdk/src/lane.hpp"
#include "worker_sdk/src/ring_meeting.hpp"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

/// Slots of messages carry a tag in bits 24 to 55 and nothing above; these two can meet none of them.
constexpr std::uint64_t watch_slot = std::uint64_t{0xff} << 56;
constexpr std::uint64_t probe_slot = std::uint64_t{0xfe} << 56;

/// That a neighbour has closed its connections is heard on two of them, a moment apart.
constexpr milliseconds between_two_ends = std::chrono::seconds(1);

/// "For ever" that does not overflow when it is added to a clock. Gloo closes all connections after it.
constexpr milliseconds for_ever = std::chrono::hours(24 * 365);

milliseconds until(Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, milliseconds(0));
}

std::shared_ptr<gloo::transport::Device> make_device(const MeshOptions& options) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = options.interface_name;
  attributes.hostname = options.address;
  const SignalsBlocked blocked;  // the device starts a thread
  return gloo::transport::tcp::CreateDevice(attributes);
}

std::string address_key(const MeshOptions& options, int rank) {
  return fmt::format("{}/address/{}", options.prefix, rank);
}

/// That a rank has seen that the settings differ.
std::string told_key(const MeshOptions& options, int rank) {
  return fmt::format("{}/told/{}", options.prefix, rank);
}

/// How long a rank that ends for a setting waits for the others to see it: the store may end with it.
constexpr milliseconds time_to_be_told = std::chrono::seconds(5);

/// What a rank leaves in the store: its setting, the end of the line, and what every other rank needs to connect to it:
/// for each of them one address, all of the same length.
struct Record {
  std::string setting;
  std::string addresses;

  std::string text() const { return setting + '\n' + addresses; }
  static Record parse(const std::string& text) {
    const auto end = text.find('\n');
    if (end == std::string::npos) return {};
    return {text.substr(0, end), text.substr(end + 1)};
  }
};

std::string address_for(const std::string& addresses, int reader, int owner, int size,
                        const RankNames& names) {
  const auto count = static_cast<std::size_t>(size - 1);
  if (addresses.empty() || addresses.size() % count != 0)
    throw CollectiveError(fmt::format("rank {}'s address in the store is damaged", names(owner)));
  const std::size_t length = addresses.size() / count;
  const auto place = static_cast<std::size_t>(reader < owner ? reader : reader - 1);
  return addresses.substr(place * length, length);
}

}  // namespace

class Mesh::Context : public gloo::Context {
 public:
  using gloo::Context::Context;

  void connect(const MeshOptions& options, KeyValueStore& store) {
    const Deadline deadline = std::chrono::steady_clock::now() + options.timeout;
    device_ = make_device(options);
    transportContext_ = device_->createContext(rank, size);
    // A pair gives up connecting after five times its time-out.
    transportContext_->setTimeout(std::max(options.timeout / 5, milliseconds(1)));
    Record own{.setting = options.setting, .addresses = {}};
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      const auto bytes = transportContext_->createPair(peer)->address().bytes();
      own.addresses.append(bytes.begin(), bytes.end());
    }
    store.set(address_key(options, rank), own.text());
    std::vector<std::string> settings(static_cast<std::size_t>(size), options.setting);
    std::vector<std::string> addresses(static_cast<std::size_t>(size));
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      const auto found = store.get(address_key(options, peer), until(deadline));
      if (!found) throw_absent(options, store, peer);
      const auto place = static_cast<std::size_t>(peer);
      const auto record = Record::parse(*found);
      settings[place] = record.setting;
      addresses[place] = address_for(record.addresses, rank, peer, size, options.names);
    }
    compare_settings(options, store, settings);
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      const auto& address = addresses[static_cast<std::size_t>(peer)];
      try {
        transportContext_->getPair(peer)->connect({address.begin(), address.end()});
      } catch (const std::exception& error) {
        throw CollectiveError(fmt::format("rank {}: {}", options.names(peer), error.what()));
      }
    }
  }

 private:
  void compare_settings(const MeshOptions& options, KeyValueStore& store,
                        const std::vector<std::string>& settings) const {
    std::string setting;
    std::vector<int> with;
    std::vector<int> without;
    for (int r = 0; r < size; ++r) {
      const auto& theirs = settings[static_cast<std::size_t>(r)];
      (theirs.empty() ? without : with).push_back(options.names(r));
      if (!theirs.empty()) setting = theirs;
    }
    if (with.empty() || without.empty()) return;
    const auto deadline = std::chrono::steady_clock::now() + std::min(options.timeout, time_to_be_told);
    try {
      store.set(told_key(options, rank), "");
      for (int peer = 0; peer < size; ++peer) store.get(told_key(options, peer), until(deadline));
    } catch (const CollectiveError&) {
      // The store has ended: the rank that had it knows that all others have come so far.
    }
    throw std::invalid_argument(
        fmt::format("{}: {} is set on {} and not on {}; set it on all ranks or on none",
                    forming_text(options.names.group), setting, ranks_text(with), ranks_text(without)));
  }

  [[noreturn]] void throw_absent(const MeshOptions& options, KeyValueStore& store, int first) const {
    std::vector<int> absent{options.names(first)};
    for (int peer = first + 1; peer < size; ++peer)
      if (peer != rank && !store.get(address_key(options, peer), milliseconds(1)))
        absent.push_back(options.names(peer));
    throw CollectiveError(absent_ranks_text(absent, static_cast<std::size_t>(size), options.timeout));
  }
};

Mesh::Mesh(const MeshOptions& options, KeyValueStore& store)
    : rank_(options.rank),
      size_(options.size),
      context_(std::make_shared<Context>(options.rank, options.size)) {
  try {
    const Deadline deadline = std::chrono::steady_clock::now() + options.timeout;
    context_->connect(options, store);
    ring_.emplace(meet_neighbours(options, store, deadline));
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception& error) {
    throw CollectiveError(fmt::format("{}: {}", forming_text(options.names.group), error.what()));
  }
  const SignalsBlocked blocked;
  watcher_ = std::thread([this] { watch(); });
}

Mesh::~Mesh() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (watched_) watched_->abortWaitRecv();
  }
  watcher_.join();
}

void Mesh::watch() {
  std::set<int> alive;
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) alive.insert(peer);
  while (true) {
    auto fresh = context_->createUnboundBuffer(nullptr, 0);
    auto* watched = fresh.get();
    std::set<int> gone;
    for (int peer : alive) {
      try {
        watched->recv(peer, watch_slot);
      } catch (const std::exception&) {  // its connection is closed: that is what is asked here
        gone.insert(peer);
      }
    }
    {
      const std::lock_guard lock(mutex_);
      watched_.swap(fresh);
      for (int peer : gone) alive.erase(peer);
      lost_.insert(gone.begin(), gone.end());
      lost_more_.notify_all();
      if (!gone.empty())
        for (auto* buffer : buffers_) {
          buffer->abortWaitRecv();
          buffer->abortWaitSend();
        }
      if (stopping_ || alive.empty()) return;
    }
    fresh.reset();  // the one before
    try {
      watched->waitRecv(for_ever);
    } catch (const std::exception&) {  // a connection was closed: the next turn finds out which
      continue;
    }
  }
}

bool Mesh::lost(int peer) const {
  const std::lock_guard lock(mutex_);
  return lost_.contains(peer);
}

void Mesh::await_loss(int peer) {
  std::unique_lock lock(mutex_);
  lost_more_.wait_for(lock, between_two_ends, [&] { return lost_.contains(peer); });
}

void Mesh::exchange(std::uint64_t slot, std::span<const std::byte> outgoing, const Incoming& incoming,
                    Deadline deadline) {
  try {
    ring_->exchange(slot, outgoing, incoming, deadline);
  } catch (const MessageError& error) {
    if (!error.timed_out) await_loss(error.peer);
    throw;
  }
}

void Mesh::enter(gloo::transport::UnboundBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.insert(buffer);
}

void Mesh::leave(gloo::transport::UnboundBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.erase(buffer);
}

std::vector<int> Mesh::closed_peers() {
  std::vector<int> closed;
  const auto probe = context_->createUnboundBuffer(nullptr, 0);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    try {
      probe->recv(peer, probe_slot);
    } catch (const std::exception&) {
      closed.push_back(peer);
    }
  }
  return closed;
}

void Mesh::close() {
  close_messages();
  ring_->close();
}

void Mesh::close_messages() {
  // Gloo's own close() would not wake the waits of this process. Its answer to a wait that ran out does: it
  // fails every connection of the context.
  try {
    context_->createUnboundBuffer(nullptr, 0)->waitRecv(nullptr, milliseconds(0));
  } catch (const std::exception&) {
    return;
  }
}

MessageBuffer::MessageBuffer(Mesh& mesh, void* data, std::size_t bytes)
    : mesh_(mesh), buffer_(mesh.context_->createUnboundBuffer(data, bytes)) {
  mesh_.enter(buffer_.get());
}

MessageBuffer::~MessageBuffer() {
  mesh_.leave(buffer_.get());
  buffer_.reset();
  // Gloo has now waited, by watching a counter, until nobody reads into the memory. To look at every
  // connection takes its lock too: an order of events that the thread sanitizer can see.
  if (unfinished_ > 0) mesh_.closed_peers();
}

void MessageBuffer::send(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  try {
    buffer_->send(peer, slot, offset, bytes);
    ++unfinished_;
  } catch (const std::exception& error) {
    throw MessageError(peer, false, error.what());
  }
}

void MessageBuffer::receive(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  try {
    buffer_->recv(peer, slot, offset, bytes);
    ++unfinished_;
  } catch (const std::exception& error) {
    throw MessageError(peer, false, error.what());
  }
}

void MessageBuffer::wait_sent(int peer, Deadline deadline) {
  wait(&gloo::transport::UnboundBuffer::waitSend, peer, deadline);
}

void MessageBuffer::wait_received(int peer, Deadline deadline) {
  wait(&gloo::transport::UnboundBuffer::waitRecv, peer, deadline);
}

void MessageBuffer::wait(Wait wait_once, int peer, Deadline deadline) {
  bool gone = false;
  try {
    while (true) {
      // What came before the connection closed still counts: look once more, without waiting.
      gone = mesh_.lost(peer);
      if ((buffer_.get()->*wait_once)(nullptr, gone ? milliseconds(0) : until(deadline))) break;
    }
    --unfinished_;
  } catch (const std::exception& error) {
    const bool timed_out = !gone && std::chrono::steady_clock::now() >= deadline;
    throw MessageError(peer, timed_out, error.what());
  }
}

}  // namespace muster::worker
