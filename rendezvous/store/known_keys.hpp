// What a key of a worker store says about who has to write it: the shapes that PyTorch's process groups, Gloo
// and our SDK use. Pure.
//
//   .../default_pg/GROUP...[/DEVICE]/0/RANK          Gloo's addresses of that rank
//   .../default_pg/GROUP...[/DEVICE]/0/rank_RANK     its host name (PyTorch up to 2.0)
//   .../default_pg/GROUP...[/DEVICE]/NUMBER          NCCL's id of a communicator, from the group's rank 0
//   .../default_pg/GROUP...[/DEVICE]/LOW:HIGH        the same for a pair, from the lower rank
//   .../default_pg/.../SEQ_NUM_STORE_KEY             from the group's rank 0 (PyTorch up to 2.0)
//   .../store_based_barrier_key:GROUP:last_worker    from the last rank that arrives
//   .../muster/round-N/restart-N/world/address/RANK  our SDK's addresses of that rank
//
// Slashes may be doubled. Group "0" is that of all ranks; in other groups ranks are counted anew.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::rendezvous {

struct KnownKey {
  std::string what;          ///< "gloo address"
  std::string group;         ///< empty: all ranks
  std::optional<int> owner;  ///< the rank in the group that writes it; nothing: whoever comes last
};

/// Nothing for a key of any other shape.
std::optional<KnownKey> recognise_key(std::string_view key);

/// "rank 7's gloo address", "the gloo address of rank 1 in group 2", "the last arrival at the barrier in
/// group 2", "key '/x'".
std::string awaited_text(std::string_view key);

/// For sentences: keys may hold any octet and be long.
std::string shown_key(std::string_view key);

}  // namespace muster::rendezvous
