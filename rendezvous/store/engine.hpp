// The store itself: keys, values, queues, barriers and waits of one keyspace. Pure: a request in, reply bytes
// and woken connections out. No sockets, no threads, no clock; waits never time out here, since every timeout
// of this protocol is the client's.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rendezvous/store/codec.hpp"
#include "rendezvous/store/limits.hpp"
#include "rendezvous/store/value.hpp"
#include "rendezvous/store/waits.hpp"

namespace muster::rendezvous {

/// Who is connected, who waits for what, who wrote what: enough to say which rank is missing.
struct StoreDiagnosis {
  struct Connection {
    StoreConnectionId id = 0;
    std::string peer;                    ///< "10.0.0.2:51234", filled by the server
    std::uint32_t pid = 0;               ///< from PING; 0 if the client sent none (PyTorch up to 2.4)
    bool joined = false;                 ///< it has counted itself in `init/`
    std::vector<std::string> waits_for;  ///< as on the wire; at most reported_keys_per_client_max
    unsigned waiting_periods = 0;        ///< begun since its wait did, see StoreEngine::next_period()
    std::vector<std::string> keys_set;   ///< last written by it, sorted; same limit
  };
  std::optional<std::int64_t> joined;  ///< the counter `init/`, nothing before the first
  std::vector<Connection> connections;
};

class StoreEngine {
 public:
  explicit StoreEngine(StoreLimits limits = {});

  StoreConnectionId connect();
  /// Drops its wait. An item that it was woken for and did not take wakes the next one.
  void disconnect(StoreConnectionId id, StoreWoken& woken);

  /// Carries out one request: appends its reply to `reply` (nothing, if it has none or must wait) and the
  /// connections it woke to `woken`, perhaps `id` itself. A sentence comes back if the request cannot be
  /// answered: the connection must then be closed.
  std::optional<std::string> handle(StoreConnectionId id, const StoreRequest& request, StoreOutput& reply,
                                    StoreWoken& woken);

  bool waiting(StoreConnectionId id) const { return waits_.waiting(id); }
  /// For a client that has stopped listening for the answer.
  void drop_wait(StoreConnectionId id) { waits_.drop(id); }

  /// What waits that ended early have left: takes memory until it is cleared up, a bit at a time.
  bool has_traces() const { return waits_.has_traces(); }
  void clear_up(std::size_t keys_max) { waits_.clear_up(keys_max); }

  std::size_t keys() const { return values_.size(); }
  /// Values count until the last answer that holds them has gone.
  std::size_t stored_bytes() const { return stored_bytes_ + long_values_->all + waits_.bytes(); }
  /// Of them: values that only answers under way still hold.
  std::size_t replaced_bytes() const { return long_values_->replaced; }
  std::optional<std::int64_t> joined() const;
  StoreDiagnosis diagnosis() const;

  /// Its only notion of time: the caller says that some has passed, and waits know how often that was.
  void next_period() { waits_.next_period(); }
  unsigned periods_of_oldest_wait() const { return waits_.periods_of_oldest(); }

 private:
  using Refusal = std::optional<std::string>;
  struct Value {
    StoreValue value;
    StoreConnectionId writer;
  };
  struct Slot {
    std::uint32_t generation = 0;
    bool live = false;
    bool joined = false;
    std::uint32_t pid = 0;
    std::string woken_by_queue;  ///< the queue whose item it was woken for and has not asked for yet
  };

  /// Of an absent key: empty.
  const StoreValue& value_of(std::string_view key) const;
  bool present(std::string_view key) const;
  Refusal refuse_growth(StoreOp op, std::string_view key, std::size_t more_bytes) const;
  Refusal put(StoreConnectionId id, const StoreRequest& request, std::string_view key, std::string_view value,
              StoreWoken& woken);
  Refusal append(StoreConnectionId id, const StoreRequest& request, StoreWoken& woken);
  Refusal compare_set(StoreConnectionId id, const StoreRequest& request, StoreOutput& reply,
                      StoreWoken& woken);
  Refusal increase(StoreOp op, std::string_view key, std::int64_t delta, std::int64_t* sum) const;
  Refusal add(StoreConnectionId id, const StoreRequest& request, StoreOutput& reply, StoreWoken& woken);
  Refusal barrier(StoreConnectionId id, const StoreRequest& request, StoreOutput& reply, StoreWoken& woken);
  bool all_present(const std::vector<std::string_view>& keys) const;
  Refusal wait(StoreConnectionId id, const StoreRequest& request, StoreOutput& reply);
  std::int64_t delete_key(std::string_view key);
  Refusal multi_get(const StoreRequest& request, StoreOutput& reply) const;
  Refusal multi_set(StoreConnectionId id, const StoreRequest& request, StoreWoken& woken);
  Refusal list_keys(StoreOutput& reply) const;
  Refusal queue_push(const StoreRequest& request, StoreWoken& woken);
  void queue_pop(std::string_view key, StoreOutput& reply);
  std::int64_t queue_len(std::string_view key) const;
  void wake_for_item(std::string_view key, StoreWoken& woken);

  StoreLimits limits_;
  boost::unordered_flat_map<std::string, Value, StoreKeyHash, std::equal_to<>> values_;
  /// Lists: there may be many queues of an item or two each, and an empty deque takes 600 bytes.
  std::unordered_map<std::string, std::list<StoreValue>, StoreKeyHash, std::equal_to<>> queues_;
  StoreWaits waits_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::string_view> missing_;  ///< of the request at hand
  std::size_t stored_bytes_ = 0;           ///< but for those of long values
  std::shared_ptr<StoreByteCount> long_values_ = std::make_shared<StoreByteCount>();
};

}  // namespace muster::rendezvous
