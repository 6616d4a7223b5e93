// What passes over the channel besides the conversation of agent and core (messages.hpp): who one is, proof
// of it, and what an operator asks. Plain values; the codec and the grammar are in codec.hpp and codec.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

// 2: own addresses, store clients; 3: their nodes; 4: whether the daemon is a standing one; 5: a job's end by lost nodes;
// 6: the run in which an agent was, and the next node of its round; 7: rehearsed faults
inline constexpr std::uint16_t kProtocolVersion = 8;
inline constexpr std::size_t kMaxOwnAddresses = 32;       ///< a machine with more does not say what it has
inline constexpr std::size_t kMaxStoreClients = 40'000;   ///< as many as fit into one frame
inline constexpr std::size_t kMaxStoreNodes = 1'024;      ///< that fit beside them; of more, none is named
inline constexpr std::size_t kMaxStoreAddressBytes = 48;  ///< numeric

using Nonce = std::array<char, 32>;
using Mac = std::array<char, 32>;  ///< HMAC-SHA256; all zero from a side that has no token

enum class PeerRole : std::uint8_t { agent = 1, operator_ = 2 };

/// One setting of the job as this side understands it. Two agents of a job must name the same ones with equal
/// values; as text, so that a refusal can show both.
struct PolicyValue {
  std::string name;
  std::string value;
  bool operator==(const PolicyValue&) const = default;
};

/// First frame on every connection. Magic and version stand in front of it on the wire.
struct Hello {
  PeerRole role = PeerRole::agent;
  std::string job;          ///< may be empty for an operator
  NodeId node;              ///< may be empty for an operator
  std::string incarnation;  ///< the offer's: tells a reconnect from a second agent under the same name
  std::vector<PolicyValue> policy;
  Nonce nonce{};
  std::uint64_t job_incarnation = 0;  ///< Welcome's, of the run in which it was; 0: in none yet
  bool operator==(const Hello&) const = default;
};

struct Challenge {
  Nonce nonce{};
  bool token_required = false;
  Mac proof{};  ///< that the daemon knows the token
  bool operator==(const Challenge&) const = default;
};

struct Proof {
  Mac proof{};
  bool operator==(const Proof&) const = default;
};

struct Welcome {
  std::uint64_t job_incarnation = 0;  ///< another one for each run under the same id
  std::uint32_t heartbeat_interval_ms = 0;
  std::uint32_t heartbeat_timeout_ms = 0;
  bool standing = false;  ///< somebody keeps this daemon running; else a launcher started it for its job
  bool operator==(const Welcome&) const = default;
};

/// From an agent, before what it says of rounds: the numeric addresses of its machine, from which its workers may
/// come. None: it does not say.
struct OwnAddresses {
  std::vector<std::string> addresses;
  bool operator==(const OwnAddresses&) const = default;
};

/// To the agent that serves the round's worker store, before its Assignment: where the round's workers may come
/// from, none: from anywhere; and which node has which ranks, for what is said of a round that does not get on,
/// none: it is not told.
struct StoreNode {
  NodeId node;
  std::string address;  ///< numeric, or empty
  std::int32_t first_rank = 0;
  std::int32_t workers = 0;
  bool operator==(const StoreNode&) const = default;
};
struct StoreClients {
  std::int32_t round = 0;
  std::vector<std::string> addresses;
  std::vector<StoreNode> nodes = {};
  bool operator==(const StoreClients&) const = default;
};

enum class OperatorVerb : std::uint8_t {
  status = 1,
  events,
  drain_node,
  scale,
  close_roster,
  clear_cooldown,
  stop_job,
  rehearse
};

struct OperatorRequest {
  OperatorVerb verb = OperatorVerb::status;
  std::string job;  ///< empty: all jobs (status, events), or the only one there is
  std::string node;
  std::int32_t min_nodes = 0;
  std::int32_t max_nodes = 0;
  std::int32_t rank = -1;  ///< of a rehearsal: whose worker gets the signal; -1: the agent of `node` does
  std::int32_t signal_number = 0;  ///< of a rehearsal
  bool operator==(const OperatorRequest&) const = default;
};

struct OperatorReply {
  bool ok = false;
  std::string json;  ///< {"error": "..."} when not ok
  bool operator==(const OperatorReply&) const = default;
};

}  // namespace muster::rendezvous
