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
  /// Forgets the connection's wait, if it has one.
  void drop(StoreConnectionId id);

  bool waiting(StoreConnectionId id) const { return !waits_.empty() && waits_.contains(id); }
  bool empty() const { return waits_.empty(); }
  /// What the connection still waits for.
  std::vector<std::string> keys_of(StoreConnectionId id) const;

  /// The key has been written: every wait for it has one key less to wait for.
  void key_written(std::string_view key, StoreWoken& woken);
  /// The key exists now, but as a barrier that is not complete.
  void barrier_began(std::string_view key, StoreWoken& woken);
  /// One item came into the queue `key`: ends one wait, not all, since one client can take it.
  void item_queued(std::string_view key, StoreWoken& woken);

  /// Memory that waits take, about.
  std::size_t bytes() const { return bytes_; }
  /// What `begin` would add to bytes(), at most.
  static std::size_t cost_bytes(std::span<const std::string_view> missing);

 private:
  struct Waiter {
    StoreConnectionId id;
    std::uint32_t index;  ///< in Wait::keys
    Kind kind;
  };
  using ByKey = std::unordered_map<std::string, std::vector<Waiter>, StoreKeyHash, std::equal_to<>>;
  struct Wait {
    std::vector<ByKey::value_type*> keys;  ///< null once written; the map's nodes stay where they are
    std::size_t left = 0;
    unsigned began_in = 0;  ///< period
  };

  bool satisfy(const Waiter& waiter, StoreWoken& woken);
  void erase(ByKey::iterator at);

  ByKey by_key_;
  std::unordered_map<StoreConnectionId, Wait> waits_;
  std::size_t bytes_ = 0;
  unsigned period_ = 0;
};

}  // namespace muster::rendezvous
