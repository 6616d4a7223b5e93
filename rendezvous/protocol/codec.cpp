// The channel between agents, operators and the rendezvous daemon, version 7. One TCP (or TLS) connection
// carries frames both ways; all numbers are little-endian, signed ones in two's complement.
//
//   frame      = u32 length of payload, u8 type, payload
//   text       = u32 length (at most 65536), that many bytes of UTF-8
//   line       = text of at most 4096 bytes
//   name       = text of 1 to 256 bytes without control characters
//   bool       = u8, 0 or 1
//   optional X = bool present, X if present
//   list X     = u32 count, that many X
//   duration   = i64 nanoseconds
//
// A connection:
//
//   peer   -> hello         1   "MSTR", u16 version, u8 role (1 agent, 2 operator), name job, name node,
//                               line incarnation, list policy (name, line; at most 64), 32 bytes nonce,
//                               u64 job incarnation of the run in which it was, 0: in none
//                               (an operator's job and node may be empty)
//   daemon -> challenge     2   32 bytes nonce, bool token required, 32 bytes HMAC
//   peer   -> proof         3   32 bytes HMAC (what is signed: authentication.hpp)
//   daemon -> welcome       4   u64 job incarnation, u32 heartbeat interval in ms, u32 heartbeat timeout in ms,
//                               bool standing
//             or, at any time, the last frame of a connection:
//   daemon -> refused       5   u8 code, text reason
//   both   -> heartbeat     6   (nothing); the daemon answers each with one
//
//   agent  -> join         16   offer, last round u32, restart count u32
//             resume       17   offer, i32 round, group rank, group world size, first rank, restart count;
//                               bool workers alive, text next node or empty
//             worker failed      18   i32 round, failure
//             workers safe       19   i32 round, i64 step
//             workers stopped    20   i32 round
//             workers succeeded  21   i32 round
//             progress     22   i32 round, i64 step
//             leave        23   text reason
//             own addresses 24  list line numeric addresses (at most 32)
//   daemon -> waiting      32   text reason
//             assignment   33   i32 round, group rank, group world size, first rank, world size, first role
//             rank,
//                               role world size, restart count, max restarts; line master address,
//                               u16 master port, text reason, duration forming took, text next node or empty
//             drain        34   i32 round, duration grace, text reason
//             stop workers 35   i32 round, text reason
//             job ended    36   u8 kind (0 to 4), text reason, optional failure, list line restarts (at most
//             256),
//                               i32 max restarts
//             store clients 37  i32 round, list line numeric addresses (at most 40,000; none: any),
//                               list store node (at most 1,024; none: it is not told)
//             inject       38   optional i32 rank, i32 signal (1 to 64)
//   operator -> request    48   u8 verb (1 to 8), text job, text node, i32 min nodes, i32 max nodes, i32 rank or -1,
//                               i32 signal (0 to 64)
//   daemon   -> reply      49   bool ok, JSON to the end of the payload
//
//   offer   = name node, line host, line address, u16 store port, i32 local workers (1 to 65536), name role,
//             optional i32 preferred group rank, bool hosts endpoint, line incarnation
//   store node = name node, line numeric address or empty, i32 first rank, i32 workers
//   failure = name node, line host, i32 rank, i32 local rank, i32 pid, i32 round, i64 unix time in ms,
//             i64 lived ms, bool initialised, bool permanent, u8 exit kind (0 to 2), i32 exit value,
//             bool stopped by muster, text evidence, text message, list line last lines (at most 30), text log path
//
// Limits: 16 KiB of payload before the welcome, 2 MiB after it, 64 MiB in a reply. Magic and version never
// move, nor do type and layout of `refused`, so that a peer of any version can be told why it is refused.
//
// Example, an agent whose workers of round 2 are gone:  04 00 00 00  14  02 00 00 00
#include "rendezvous/protocol/codec.hpp"

#include "rendezvous/protocol/fields.hpp"

namespace muster::rendezvous {
namespace {

constexpr std::string_view kMagic = "MSTR";

template <class T>
constexpr FrameType kTypeOf = FrameType{};
template <>
constexpr FrameType kTypeOf<Challenge> = FrameType::challenge;
template <>
constexpr FrameType kTypeOf<Proof> = FrameType::proof;
template <>
constexpr FrameType kTypeOf<Welcome> = FrameType::welcome;
template <>
constexpr FrameType kTypeOf<Refused> = FrameType::refused;
template <>
constexpr FrameType kTypeOf<Heartbeat> = FrameType::heartbeat;
template <>
constexpr FrameType kTypeOf<Join> = FrameType::join;
template <>
constexpr FrameType kTypeOf<Resume> = FrameType::resume;
template <>
constexpr FrameType kTypeOf<WorkerFailed> = FrameType::worker_failed;
template <>
constexpr FrameType kTypeOf<WorkersSafe> = FrameType::workers_safe;
template <>
constexpr FrameType kTypeOf<WorkersStopped> = FrameType::workers_stopped;
template <>
constexpr FrameType kTypeOf<WorkersSucceeded> = FrameType::workers_succeeded;
template <>
constexpr FrameType kTypeOf<Progress> = FrameType::progress;
template <>
constexpr FrameType kTypeOf<Leave> = FrameType::leave;
template <>
constexpr FrameType kTypeOf<Waiting> = FrameType::waiting;
template <>
constexpr FrameType kTypeOf<Assignment> = FrameType::assignment;
template <>
constexpr FrameType kTypeOf<Drain> = FrameType::drain;
template <>
constexpr FrameType kTypeOf<StopWorkers> = FrameType::stop_workers;
template <>
constexpr FrameType kTypeOf<JobEnded> = FrameType::job_ended;
template <>
constexpr FrameType kTypeOf<OwnAddresses> = FrameType::own_addresses;
template <>
constexpr FrameType kTypeOf<StoreClients> = FrameType::store_clients;
template <>
constexpr FrameType kTypeOf<Inject> = FrameType::inject;
template <>
constexpr FrameType kTypeOf<OperatorRequest> = FrameType::operator_request;

template <class T>
std::string encode_fields(const T& message) {
  WireWriter out;
  wire::fields(out, message);
  return frame_bytes(kTypeOf<T>, out.bytes());
}

Error wrong_frame(const Frame& frame, const std::string& why) {
  return Error{"a frame '" + frame_type_name(frame.type) + "'", why};
}

template <class T>
Result<T> decode_fields(const Frame& frame) {
  T message;
  WireReader in(frame.payload);
  wire::fields(in, message);
  if (!in.finished()) return wrong_frame(frame, in.wrong());
  return message;
}

// The alternative of the variant that has the frame's type.
template <class Variant, std::size_t I = 0>
Result<Variant> decode_alternative(const Frame& frame) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return wrong_frame(frame, "not one that is expected here");
  } else {
    using T = std::variant_alternative_t<I, Variant>;
    static_assert(kTypeOf<T> != FrameType{}, "every message has a frame type");
    if (frame.type != kTypeOf<T>) return decode_alternative<Variant, I + 1>(frame);
    auto message = decode_fields<T>(frame);
    if (!message) return message.error();
    return Variant(std::move(*message));
  }
}

}  // namespace

std::string encode(const AgentMessage& message) {
  return std::visit([](const auto& m) { return encode_fields(m); }, message);
}

std::string encode(const DaemonMessage& message) {
  return std::visit([](const auto& m) { return encode_fields(m); }, message);
}

std::string encode(const Hello& message) {
  WireWriter out;
  out.raw(kMagic);
  out.u16(kProtocolVersion);
  wire::fields(out, message);
  return frame_bytes(FrameType::hello, out.bytes());
}

std::string encode(const Challenge& message) { return encode_fields(message); }
std::string encode(const Proof& message) { return encode_fields(message); }
std::string encode(const Welcome& message) { return encode_fields(message); }
std::string encode(const OwnAddresses& message) { return encode_fields(message); }
std::string encode(const StoreClients& message) { return encode_fields(message); }
std::string encode(const OperatorRequest& message) { return encode_fields(message); }

std::string encode(const OperatorReply& message) {
  WireWriter out;
  out.boolean(message.ok);
  out.raw(message.json);
  return frame_bytes(FrameType::operator_reply, out.bytes());
}

std::string encode_heartbeat() { return encode_fields(Heartbeat{}); }

Result<AgentMessage> decode_agent_message(const Frame& frame) {
  return decode_alternative<AgentMessage>(frame);
}

Result<DaemonMessage> decode_daemon_message(const Frame& frame) {
  return decode_alternative<DaemonMessage>(frame);
}

std::variant<Hello, Refused> decode_hello(const Frame& frame) {
  if (frame.type != FrameType::hello || !frame.payload.starts_with(kMagic))
    return Refused{RefusalCode::bad_magic,
                   "this is a muster rendezvous, and the first bytes were not muster's"};
  WireReader in(frame.payload.substr(kMagic.size()));
  std::uint16_t version = 0;
  in.u16(version);
  if (in.ok() && version != kProtocolVersion)
    return Refused{RefusalCode::wrong_version,
                   "this daemon speaks version " + std::to_string(kProtocolVersion) +
                       " of the protocol, the peer version " + std::to_string(version) +
                       "; install the same muster on both"};
  Hello hello;
  wire::fields(in, hello);
  if (!in.finished()) return Refused{RefusalCode::malformed, "a hello that cannot be read: " + in.wrong()};
  return hello;
}

template <class T>
Result<T> decode(const Frame& frame) {
  if (frame.type != kTypeOf<T>)
    return wrong_frame(frame, "'" + frame_type_name(kTypeOf<T>) + "' is expected here");
  return decode_fields<T>(frame);
}

template Result<Challenge> decode(const Frame&);
template Result<Proof> decode(const Frame&);
template Result<Welcome> decode(const Frame&);
template Result<OwnAddresses> decode(const Frame&);
template Result<StoreClients> decode(const Frame&);
template Result<OperatorRequest> decode(const Frame&);

template <>
Result<OperatorReply> decode(const Frame& frame) {
  if (frame.type != FrameType::operator_reply) return wrong_frame(frame, "'operator reply' is expected here");
  OperatorReply reply;
  WireReader in(frame.payload.substr(0, 1));
  in.boolean(reply.ok);
  if (!in.finished()) return wrong_frame(frame, in.wrong());
  reply.json = frame.payload.substr(1);
  return reply;
}

std::string frame_type_name(FrameType type) {
  switch (type) {
    case FrameType::hello:
      return "hello";
    case FrameType::challenge:
      return "challenge";
    case FrameType::proof:
      return "proof";
    case FrameType::welcome:
      return "welcome";
    case FrameType::refused:
      return "refused";
    case FrameType::heartbeat:
      return "heartbeat";
    case FrameType::join:
      return "join";
    case FrameType::resume:
      return "resume";
    case FrameType::worker_failed:
      return "worker failed";
    case FrameType::workers_safe:
      return "workers safe";
    case FrameType::workers_stopped:
      return "workers stopped";
    case FrameType::workers_succeeded:
      return "workers succeeded";
    case FrameType::progress:
      return "progress";
    case FrameType::leave:
      return "leave";
    case FrameType::own_addresses:
      return "own addresses";
    case FrameType::waiting:
      return "waiting";
    case FrameType::assignment:
      return "assignment";
    case FrameType::drain:
      return "drain";
    case FrameType::stop_workers:
      return "stop workers";
    case FrameType::job_ended:
      return "job ended";
    case FrameType::store_clients:
      return "store clients";
    case FrameType::inject:
      return "inject";
    case FrameType::operator_request:
      return "operator request";
    case FrameType::operator_reply:
      return "operator reply";
  }
  return "type " + std::to_string(static_cast<int>(type));
}

}  // namespace muster::rendezvous
