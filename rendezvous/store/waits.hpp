// Who waits for which key: at most one wait for each connection, any number for each key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::rendezvous {

/// Slot (low 32 bits) and generation: slots are used again, ids never.
using StoreConnectionId = std::uint64_t;

inline std::size_t slot_of(StoreConnectionId id) { return static_cast<std::uint32_t>(id); }

/// Finds std::string keys by a std::string_view, without making a string.
struct StoreKeyHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view key) const noexcept { return std::hash<std::string_view>{}(key); }
};

/// Connections whose wait ended, in the order in which it did: each is owed one reply_stop_waiting.
using StoreWoken = std::vector<StoreConnectionId>;

class StoreWaits {
 public:
  enum class Kind : std::uint8_t {
    keys,    ///< WAIT: the existence of the keys
    barrier  ///< BARRIER: its completion, or a SET of its key
  };

  /// Some time passed, as long as the caller means by a period.
  void next_period() { ++period_; }
  /// How many periods have begun since the connection's wait did; 0 without one.
  unsigned periods_of(StoreConnectionId id) const;
  /// The same of the oldest wait.
  unsigned periods_of_oldest() const;

  /// Begins a wait for `missing` (at least one; the same key twice counts once). The connection has none.
  void begin(StoreConnectionId id, std::span<const std::string_view> missing, Kind kind);
  /// Ends the connection's wait, if it has one. One for many keys leaves its traces, of which nobody else takes notice, to
  /// clear_up(): to look for each of 100,000 keys takes a tenth of a second.
  void drop(StoreConnectionId id);
  bool has_traces() const { return !dropped_.empty(); }
  /// Of about `keys_max` keys.
  void clear_up(std::size_t keys_max);

  bool waiting(StoreConnectionId id) const { return !current_.empty() && current_.contains(id); }
  bool empty() const { return current_.empty(); }
  /// What the connection still waits for.
  std::vector<std::string> keys_of(StoreConnectionId id) const;

  /// The key has been written: every wait for it has one key less to wait for.
  void key_written(std::string_view key, StoreWoken& woken);
  /// The key exists now, but as a barrier that is not complete.
  void barrier_began(std::string_view key, StoreWoken& woken);
  /// One item came into the queue `key`: ends one wait, not all, since one client can take it.
  void item_queued(std::string_view key, StoreWoken& woken);

  /// Memory that waits and their traces take, about.
  std::size_t bytes() const { return bytes_; }
  /// What `begin` would add to bytes(), at most.
  static std::size_t cost_bytes(std::span<const std::string_view> missing);

 private:
  using Serial = std::uint64_t;  ///< of a wait; never used again
  struct Waiter {
    Serial wait;
    std::uint32_t index;  ///< in Wait::keys
    Kind kind;
  };
  using ByKey = std::unordered_map<std::string, std::vector<Waiter>, StoreKeyHash, std::equal_to<>>;
  struct Wait {
    std::vector<ByKey::value_type*> keys;  ///< null once written; the map's nodes stay where they are
    std::size_t left = 0;                  ///< of them
    unsigned began_in = 0;                 ///< period
    StoreConnectionId id = 0;
    bool dropped = false;  ///< nobody waits any more; its keys are looked for from the last one down
  };

  const Wait* current(StoreConnectionId id) const;
  bool satisfy(const Waiter& waiter, StoreWoken& woken);
  std::size_t clear_up(Serial serial, Wait& wait, std::size_t keys_max);
  void erase(ByKey::iterator at);

  ByKey by_key_;
  std::unordered_map<Serial, Wait> waits_;
  std::unordered_map<StoreConnectionId, Serial> current_;
  std::vector<Serial> dropped_;  ///< some may be in waits_ no more
  Serial last_serial_ = 0;
  std::size_t bytes_ = 0;
  unsigned period_ = 0;
};

}  // namespace muster::rendezvous
