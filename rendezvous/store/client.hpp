// A blocking TCPStore client: for our own server and for PyTorch's, of any version from 1.13 on.
//
//   StoreClient store({"10.0.0.1", 41877});
//   store.set("name", "value");                  // "/name" on the wire, as PyTorch's clients write it
//   auto group = store.prefixed("default_pg").prefixed("0");
//   group.get("1", 30s);                         // waits for "/default_pg/0/1"
//
// Errors: StoreTimeout when the time is over, StoreError for everything else that a server or the network may
// cause. After a StoreTimeout of a wait the client can be used on. After a lost connection the call that
// noticed it throws, and the next call connects again (the server is then perhaps a new, empty one: a caller
// that cannot bear this must not go on).
//
// Threads: any, but a call holds the connection until it is done, waits included. A thread that must not be
// held up by another's wait needs a client of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/endpoint.hpp"
#include "rendezvous/store/client_options.hpp"
#include "rendezvous/store/codec.hpp"

namespace muster::rendezvous {

class StoreChannel;

/// A handle: copies share one connection.
class StoreClient {
 public:
  using Timeout = std::optional<std::chrono::milliseconds>;  ///< nothing: StoreClientOptions::timeout

  /// Connects. Tries every address of the name, again and again with growing, random pauses, until a server
  /// answers; throws StoreTimeout with the last try's cause.
  explicit StoreClient(Endpoint server, StoreClientOptions options = {});

  /// As PyTorch's PrefixStore: the same store, `prefix/` before every key. Prefixes nest.
  StoreClient prefixed(std::string_view prefix) const;

  /// Which dialect the server was found to speak.
  StoreDialect dialect() const;
  const Endpoint& server() const;

  void set(std::string_view key, std::string_view value);
  /// Waits for the key.
  std::string get(std::string_view key, Timeout timeout = {});
  /// Adds to the decimal number under `key` (0 if absent) and returns the sum.
  std::int64_t add(std::string_view key, std::int64_t delta);
  /// Stores `desired` if the value is `expected`, or if both the key is absent and `expected` empty. Returns
  /// the value that is stored then; for an absent key and a non-empty `expected`, that `expected`.
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired);
  bool check(const std::vector<std::string>& keys);
  void wait(const std::vector<std::string>& keys, Timeout timeout = {});
  bool delete_key(std::string_view key);
  /// Of the whole store, whatever the prefix.
  std::int64_t num_keys();

  /// Waits for all of them.
  std::vector<std::string> multi_get(const std::vector<std::string>& keys, Timeout timeout = {});
  void multi_set(const std::vector<std::pair<std::string, std::string>>& entries);

  // Not in dialect A, and only as new as said; an older server drops the connection, which gives a
  // StoreError.
  void append(std::string_view key, std::string_view suffix);     // 2.1
  void queue_push(std::string_view key, std::string_view value);  // 2.8
  /// Nothing if the queue is empty.
  std::optional<std::string> queue_pop(std::string_view key);  // 2.8
  /// Waits for an item, also when another client takes the first one.
  std::string queue_pop_wait(std::string_view key, Timeout timeout = {});  // 2.8
  std::int64_t queue_len(std::string_view key);                            // 2.8
  /// Under this prefix, without it. Sorted.
  std::vector<std::string> list_keys();  // 2.10
  /// Returns when `world_size` clients have called it with this key. For one use: take a fresh key each time.
  /// In dialect A it is made of ADD, SET and WAIT, as PyTorch does it there.
  void barrier(std::string_view key, std::int64_t world_size, Timeout timeout = {});  // 2.12

  /// Counts this client in `init/`, as every worker's store object does; returns how many there are.
  std::int64_t announce_worker();
  /// False in dialect A and before 2.5, which have no PING.
  bool ping();

 private:
  StoreClient(std::shared_ptr<StoreChannel> channel, std::string prefix);
  std::string wire_key(std::string_view key) const { return prefix_ + std::string(key); }
  std::vector<std::string> wire_keys(const std::vector<std::string>& keys) const;
  StoreDeadline deadline_of(const Timeout& timeout) const;

  std::shared_ptr<StoreChannel> channel_;
  std::string prefix_;  ///< begins and ends with '/'
};

}  // namespace muster::rendezvous
