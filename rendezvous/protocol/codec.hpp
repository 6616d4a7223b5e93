// Messages to bytes and back. The grammar of the channel stands at the top of codec.cpp.
//
// encode() gives a whole frame, header included. The decoders take one frame; they accept exactly what
// encode() produces and name the first thing that is wrong with anything else. Nothing here keeps state or
// does I/O.
#pragma once

#include <string>
#include <variant>

#include "base/error.hpp"
#include "rendezvous/protocol/channel_messages.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

std::string encode(const AgentMessage& message);
std::string encode(const DaemonMessage& message);
std::string encode(const Hello& message);
std::string encode(const Challenge& message);
std::string encode(const Proof& message);
std::string encode(const Welcome& message);
std::string encode(const OwnAddresses& message);
std::string encode(const StoreClients& message);
std::string encode(const OperatorRequest& message);
std::string encode(const OperatorReply& message);
/// The daemon's answer to an agent's Heartbeat, which is the same frame.
std::string encode_heartbeat();

Result<AgentMessage> decode_agent_message(const Frame& frame);
Result<DaemonMessage> decode_daemon_message(const Frame& frame);

/// A peer of another kind or version is told so, whatever else its first frame holds.
std::variant<Hello, Refused> decode_hello(const Frame& frame);

/// T is Challenge, Proof, Welcome, OwnAddresses, StoreClients, OperatorRequest or OperatorReply.
template <class T>
Result<T> decode(const Frame& frame);

/// "assignment"; "type 99" for one that does not exist.
std::string frame_type_name(FrameType type);

}  // namespace muster::rendezvous
