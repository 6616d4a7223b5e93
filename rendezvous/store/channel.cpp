#include "rendezvous/store/channel.hpp"

#include <fmt/format.h>

namespace muster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;

/// For the answer to CANCEL_WAIT, beyond the caller's own timeout.
constexpr std::chrono::seconds cancel_timeout{10};

}  // namespace

StoreChannel::StoreChannel(Endpoint server, StoreClientOptions options)
    : server_(std::move(server)), options_(options) {
  ensure_connected(StoreDeadline::in(options_.connect_timeout));
}

StoreDialect StoreChannel::spoken() const {
  return greeting_ == StoreGreeting::a ? StoreDialect::a : StoreDialect::c;
}

StoreDialect StoreChannel::dialect() {
  const std::lock_guard lock(mutex_);
  return spoken();
}

bool StoreChannel::has_ping() {
  const std::lock_guard lock(mutex_);
  return greeting_ == StoreGreeting::c_with_ping;
}

void StoreChannel::ensure_connected(const StoreDeadline& deadline) {
  if (socket_) return;
  auto greeted = greet_store(server_, options_.dialect, greeting_, deadline);
  socket_ = std::move(greeted.socket);
  greeting_ = greeted.greeting;
  input_.clear();
  used_ = 0;
}

void StoreChannel::fail(StoreOp op, const std::string& why) {
  socket_.close();
  throw StoreError(fmt::format("worker store {}: {}: {}", server_.text(), name_of(op), why));
}

void StoreChannel::send(const StoreRequest& request, const StoreDeadline& deadline) {
  output_.clear();
  if (!append_request(spoken(), request, output_))
    throw StoreError(
        fmt::format("worker store {}: {}: this server is of PyTorch 2.0 or older and has no such "
                    "request",
                    server_.text(), name_of(request.op)));
  if (const auto sent = socket_.send_all(output_, deadline.at); !sent)
    fail(request.op, sent.error().sentence());
}

bool StoreChannel::receive(const StoreRequest& request, Clock::time_point deadline) {
  input_.erase(0, used_);
  used_ = 0;
  for (;;) {
    std::size_t size = 0;
    const auto found = parse_reply(request, input_, options_.reply_bytes_max, reply_, &size);
    if (found.state == ScanResult::State::bad) fail(request.op, found.why);
    if (found.state == ScanResult::State::whole) {
      used_ = size;
      return true;
    }
    while (input_.size() < size) {
      const auto received = socket_.receive(input_, deadline);
      if (!received) fail(request.op, received.error().sentence());
      if (*received == StoreSocket::Received::timeout) return false;
      if (*received == StoreSocket::Received::closed)
        fail(request.op, "the server closed the connection (it ended, or refused the request)");
    }
  }
}

StoreAnswer StoreChannel::call(const StoreRequest& request, const StoreDeadline& deadline) {
  const std::lock_guard lock(mutex_);
  ensure_connected(deadline);
  send(request, deadline);
  if (!has_reply(request.op)) return {};
  if (!receive(request, deadline.at)) {
    // A late reply would be taken for that of the next request.
    socket_.close();
    throw StoreTimeout(fmt::format("worker store {}: {}: no reply within {}ms", server_.text(),
                                   name_of(request.op), deadline.span.count()));
  }
  return {reply_.number, {reply_.values.begin(), reply_.values.end()}};
}

bool StoreChannel::wait(const StoreRequest& request, const StoreDeadline& deadline) {
  const std::lock_guard lock(mutex_);
  ensure_connected(deadline);
  send(request, deadline);
  if (receive(request, deadline.at)) {
    if (reply_.number != reply_stop_waiting)
      fail(request.op, fmt::format("reply {} in place of 0", reply_.number));
    return true;
  }
  if (spoken() == StoreDialect::a) {
    // It has no CANCEL_WAIT, and might still answer this wait when the next reply is expected.
    socket_.close();
    return false;
  }
  return cancel(request);
}

/// True if the wait was over before the server saw the cancellation: then its answer comes first.
bool StoreChannel::cancel(const StoreRequest& waited_for) {
  StoreRequest request;
  request.op = StoreOp::cancel_wait;
  const auto deadline = StoreDeadline::in(cancel_timeout);
  send(request, deadline);
  bool satisfied = false;
  if (receive(request, deadline.at) && reply_.number == reply_stop_waiting) {
    satisfied = true;
    receive(request, deadline.at);
  }
  if (reply_.number != reply_wait_canceled) {
    // No answer, or a wrong one; whatever still comes must not be taken for another reply.
    socket_.close();
    if (used_ > 0 && !satisfied) fail(waited_for.op, fmt::format("reply {} to CANCEL_WAIT", reply_.number));
  }
  return satisfied;
}

}  // namespace muster::rendezvous
