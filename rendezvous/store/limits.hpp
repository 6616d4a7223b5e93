// What one store server lets its clients use. Every limit that a client can hit is named in the sentence that
// refuses it.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster::rendezvous {

/// A client that passes a limit is disconnected; the others do not notice.
struct StoreLimits {
  std::size_t key_bytes_max = 64UL << 10;       ///< one key; PyTorch's own server allows 8 KiB
  std::size_t value_bytes_max = 64UL << 20;     ///< one value; PyTorch's own server allows 8 MiB
  std::size_t request_keys_max = 131'072;       ///< keys in one CHECK, WAIT, MULTI_GET or MULTI_SET
  std::size_t request_bytes_max = 256UL << 20;  ///< one whole request
  std::size_t reply_bytes_max = 256UL << 20;    ///< one whole reply (MULTI_GET, LIST_KEYS)
  std::size_t stored_bytes_max = 4UL << 30;     ///< keys, values, queues and waits of the whole store
  std::size_t buffered_bytes_max = 2UL << 30;   ///< unfinished requests and unsent replies of all clients
  std::size_t output_pause_bytes = 1UL << 20;   ///< unsent replies of one client before it is no longer read
  std::size_t connections_max = 65'536;         ///< open at the same time
  std::size_t reported_peers_max = 1'024;       ///< lines about bad clients, one for each address and reason
  std::size_t reported_keys_per_client_max = 16;  ///< keys listed for one client in a diagnosis
};

/// The limit that a sentence of refusal names; empty if it is about something else.
inline std::string_view limit_named_in(std::string_view refusal) {
  for (const std::string_view name :
       {"(key_bytes_max)", "(value_bytes_max)", "(request_keys_max)", "(request_bytes_max)",
        "(reply_bytes_max)", "(stored_bytes_max)", "(buffered_bytes_max)", "(connections_max)"})
    if (refusal.find(name) != refusal.npos) return name;
  return {};
}

}  // namespace muster::rendezvous
