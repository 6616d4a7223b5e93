#include "rendezvous/server/session.hpp"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kMaxUnsentBytesToAgent = 4 * 1024 * 1024;

}  // namespace

Session::Session(Owner& owner, std::shared_ptr<Connection> connection, const Token* token, Queue& silent)
    : owner_(owner),
      connection_(std::move(connection)),
      handshake_(std::make_unique<DaemonHandshake>(token, random_nonce())),
      queue_(&silent),
      place_(silent.add(*this)) {}

Session::~Session() {
  if (queue_ != nullptr) queue_->remove(place_);
}

void Session::start() { connection_->start(shared_from_this()); }

void Session::move_to(Queue& queue) {
  if (queue_ != nullptr) queue_->remove(place_);
  queue_ = &queue;
  place_ = queue.add(*this);
}

void Session::refuse(const Refused& refused) {
  owner_.on_refusal(*this, refused);
  connection_->send(encode(DaemonMessage(refused)));
  connection_->close_after_sending();
  move_to(owner_.ending_sessions());
}

void Session::abort() {
  const auto keep_alive = shared_from_this();
  connection_->abort();
  if (queue_ != nullptr) queue_->remove(place_);
  queue_ = nullptr;
  job_.reset();
}

void Session::end(const Connection::Ending& ending) {
  const auto keep_alive = shared_from_this();
  connection_->abort();
  on_end(ending);
}

void Session::on_frame(const Frame& frame) {
  if (!handshake_done()) return on_handshake(frame);
  queue_->touch(place_);
  if (role_ == PeerRole::operator_) return on_operator_frame(frame);
  on_agent_frame(frame);
}

void Session::on_handshake(const Frame& frame) {
  auto step = handshake_->on_frame(frame);
  if (!step.reply.empty()) connection_->send(std::move(step.reply));
  if (step.refused) return refuse(*step.refused);
  if (step.admitted) return on_admitted(handshake_->hello());
  move_to(owner_.greeted_sessions());
}

void Session::on_admitted(Hello hello) {
  handshake_.reset();
  role_ = hello.role;
  node_ = hello.node;
  incarnation_ = hello.incarnation;
  move_to(owner_.established_sessions());
  if (role_ == PeerRole::agent)
    connection_->allow(kMaxPayloadBytes, kMaxUnsentBytesToAgent);
  else
    connection_->allow(kMaxHandshakePayloadBytes, kMaxReplyPayloadBytes + kFrameHeaderBytes);
  const auto answer = owner_.admit(*this, hello);
  if (const auto* refused = std::get_if<Refused>(&answer)) return refuse(*refused);
  connection_->send(encode(std::get<Welcome>(answer)));
}

void Session::on_agent_frame(const Frame& frame) {
  if (frame.type == FrameType::heartbeat) return connection_->send(encode_heartbeat());
  if (frame.type == FrameType::own_addresses) return on_own_addresses(frame);
  const auto message = decode_agent_message(frame);
  if (!message) return refuse({RefusalCode::malformed, message.error().sentence()});
  owner_.on_agent_message(*this, *message);
}

void Session::on_own_addresses(const Frame& frame) {
  auto own = decode<OwnAddresses>(frame);
  if (!own) return refuse({RefusalCode::malformed, own.error().sentence()});
  addresses_ = std::move(own->addresses);
}

void Session::on_operator_frame(const Frame& frame) {
  const auto request = decode<OperatorRequest>(frame);
  if (!request) return refuse({RefusalCode::malformed, request.error().sentence()});
  connection_->send(encode(owner_.on_operator_request(*request)));
}

void Session::on_garbage(const std::string& why) {
  if (handshake_done()) return refuse({RefusalCode::malformed, why});
  refuse({RefusalCode::bad_magic,
          "this is a muster rendezvous, and the first bytes were not muster's (" + why + ")"});
}

void Session::on_end(const Connection::Ending& ending) {
  owner_.on_end(*this, ending);
  if (queue_ != nullptr) queue_->remove(place_);
  queue_ = nullptr;
  job_.reset();
}

}  // namespace muster::rendezvous
