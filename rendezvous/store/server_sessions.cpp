// What the store server does with one client: requests in, replies out, until it goes.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "rendezvous/store/server_impl.hpp"

namespace muster::rendezvous {
namespace {

/// Scratch strings that grew beyond this in one request are given back.
constexpr std::size_t scratch_kept_bytes_max = 1UL << 20;
/// To one client at a time, so that the others have their turn.
constexpr std::size_t send_bytes_max = 1UL << 20;
constexpr std::size_t send_pieces_max = 16;
/// Of waits that ended, where their memory is wanted at once.
constexpr std::size_t keys_cleared_for_room = 200'000;

}  // namespace

bool StoreServer::Impl::read(StoreSession& session) {
  const ssize_t count = ::recv(session.fd.get(), scratch_.data(), scratch_.size(), 0);
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    close(session);
    return false;
  }
  if (count == 0) {
    session.draining = true;
    return settle(session);
  }
  const std::string_view fresh(scratch_.data(), static_cast<std::size_t>(count));
  std::size_t used = 0;
  if (session.input.empty()) {
    if (!take(session, fresh, &used)) return false;
    session.input.assign(fresh.substr(used));
  } else {
    session.input.append(fresh);
    if (!take(session, session.input, &used)) return false;
    session.input.erase(0, used);
  }
  return settle(session);
}

bool StoreServer::Impl::take(StoreSession& session, std::string_view bytes, std::size_t* used) {
  session.held = false;
  if (session.dialect == StoreDialect::undecided) {
    const auto found = detect_dialect(bytes, &session.dialect);
    if (found.state == ScanResult::State::bad) refuse(session, Fault::no_client, found.why);
    if (found.state != ScanResult::State::whole) return found.state == ScanResult::State::partial;
  }
  replies_.clear();
  std::size_t before;
  do {
    before = *used;
    if (session.output.unsent_bytes() + replies_.unsent_bytes() > limits_.output_pause_bytes) {
      if (!send_replies(session)) return false;
      if (session.output.unsent_bytes() > limits_.output_pause_bytes) {
        // It sends faster than it reads the replies: on once they are out.
        session.held = *used < bytes.size();
        return true;
      }
    }
    if (!take_one(session, bytes.substr(*used), used)) return false;
  } while (*used > before);
  return send_replies(session);
}

bool StoreServer::Impl::take_one(StoreSession& session, std::string_view bytes, std::size_t* used) {
  auto& scanner = session.scanner;
  auto found = scanner.scan(bytes, session.dialect, limits_);
  if (found.state == ScanResult::State::partial) return true;
  if (found.state == ScanResult::State::bad) {
    const bool noise = scanner.implausible() || limit_named_in(found.why).empty();
    if (send_replies(session)) refuse(session, noise ? Fault::no_client : Fault::over_limit, found.why);
    return false;
  }
  if (engine_.waiting(session.id) && scanner.op() != StoreOp::cancel_wait) {
    if (session.dialect == StoreDialect::a) {
      // Such a client gave the wait up without a word: a late answer would put it out of step.
      engine_.drop_wait(session.id);
    } else {
      session.held = true;
      return true;
    }
  }
  parse_request(scanner.op(), bytes.substr(0, scanner.size()), request_);
  *used += scanner.size();
  scanner = StoreScanner();
  ++counters_.requests_total;
  woken_.clear();
  const auto id = session.id;
  auto refusal = engine_.handle(id, request_, replies_, woken_);
  while (refusal && make_room(*refusal)) {
    if (!find(id)) return false;
    refusal = engine_.handle(id, request_, replies_, woken_);
  }
  for (const auto woken : woken_) {
    if (woken == id) {
      replies_.own().push_back(static_cast<char>(reply_stop_waiting));
    } else {
      owed_wakeups_.push_back(woken);
    }
  }
  if (!refusal) return true;
  if (send_replies(session)) refuse(session, Fault::refused_request, *refusal);
  return false;
}

bool StoreServer::Impl::resume(StoreSession& session) {
  if (!session.held) return true;
  std::size_t used = 0;
  if (!take(session, session.input, &used)) return false;
  session.input.erase(0, used);
  return settle(session);
}

/// Sends from the beginning of `output`, once. False: the connection is broken.
bool StoreServer::Impl::send_from(StoreOutput& output, int fd) {
  std::string_view pieces[send_pieces_max];
  const auto count = output.next(pieces, send_bytes_max);
  ssize_t bytes;
  if (count == 1) {  // nearly always, and half as much work for the kernel
    bytes = ::send(fd, pieces[0].data(), pieces[0].size(), MSG_NOSIGNAL);
  } else {
    iovec vectors[send_pieces_max];
    for (std::size_t i = 0; i < count; ++i)
      vectors[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    bytes = ::sendmsg(fd, &message, MSG_NOSIGNAL);
  }
  if (bytes < 0) return errno == EAGAIN || errno == EINTR;
  output.sent(static_cast<std::size_t>(bytes));
  return true;
}

bool StoreServer::Impl::send_replies(StoreSession& session) {
  if (replies_.empty()) return true;
  if (session.output.empty() && !send_from(replies_, session.fd.get())) {
    close(session);
    return false;
  }
  if (!replies_.empty()) replies_.move_to(session.output);
  return true;
}

bool StoreServer::Impl::send_rest(StoreSession& session) {
  if (!send_from(session.output, session.fd.get())) {
    close(session);
    return false;
  }
  return !session.output.empty() || (resume(session) && settle(session));
}

/// After anything was done for a session: gives back room, keeps the books, asks epoll for the right events.
bool StoreServer::Impl::settle(StoreSession& session) {
  if (session.draining && session.output.empty()) {
    close(session);
    return false;
  }
  if (session.input.empty() && session.input.capacity() > 64) std::string().swap(session.input);
  if (session.output.empty() && session.output.room_bytes() > 64) session.output.reset();
  if (replies_.room_bytes() > scratch_kept_bytes_max) replies_.reset();
  const std::size_t buffered = session.input.capacity() + session.output.room_bytes();
  counters_.buffered_bytes += buffered - session.buffered_bytes;
  session.buffered_bytes = buffered;
  const auto id = session.id;
  if (counters_.buffered_bytes > limits_.buffered_bytes_max && refuse_greediest() == id) return false;
  const bool reads = !session.held && !session.draining;
  const bool writes = !session.output.empty();
  const std::uint32_t wanted =
      (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U) | (session.held && !writes ? EPOLLRDHUP : 0U);
  if (wanted == session.interest) return true;
  epoll_event event{.events = wanted, .data = {.u64 = session.id}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, session.fd.get(), &event) != 0) {
    refuse(session, Fault::no_room, "epoll_ctl: " + errno_text(errno));
    return false;
  }
  session.interest = wanted;
  return true;
}

/// Who holds most, not who came last, is closed where there is no room for all.
StoreSession& StoreServer::Impl::greediest(HeldBy held_by) {
  return **std::ranges::max_element(
      sessions_, {}, [held_by](const auto& session) { return session ? held_by(*session) : 0; });
}

StoreConnectionId StoreServer::Impl::refuse_greediest() {
  auto& session = greediest([](const StoreSession& each) { return each.buffered_bytes; });
  const auto id = session.id;
  refuse(session, Fault::no_room,
         fmt::format("unfinished requests and unsent replies of all clients take more than {} bytes "
                     "(buffered_bytes_max), this client's {}, and no other's take more",
                     limits_.buffered_bytes_max, session.buffered_bytes));
  return id;
}

/// The store is full, also of values that were replaced while they were being sent: who keeps most of them is closed.
/// False: there is none.
bool StoreServer::Impl::make_room(std::string_view refusal) {
  if (limit_named_in(refusal) != "(stored_bytes_max)") return false;
  if (engine_.has_traces()) {
    engine_.clear_up(keys_cleared_for_room);
    return true;
  }
  if (engine_.replaced_bytes() == 0) return false;
  auto& session = greediest([](const StoreSession& each) { return each.output.replaced_bytes(); });
  const auto bytes = session.output.replaced_bytes();
  if (bytes == 0) return false;
  refuse(session, Fault::no_room,
         fmt::format(
             "the store would hold more than {} bytes (stored_bytes_max), and this client has yet to read {} "
             "of values that have been replaced since it asked for them",
             limits_.stored_bytes_max, bytes));
  return true;
}

void StoreServer::Impl::refuse(StoreSession& session, Fault fault, const std::string& why) {
  // The notice first: who sees the connection close can rely on its having been said why.
  ++counters_.refused_total;
  notice_peer(session.peer, fault, why);
  close(session);
}

void StoreServer::Impl::close(StoreSession& session) {
  // By hand: a child that is just being started may hold the socket open for a moment, and epoll with it.
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, session.fd.get(), nullptr);
  counters_.buffered_bytes -= session.buffered_bytes;
  --counters_.connections;
  engine_.disconnect(session.id, owed_wakeups_);
  sessions_[slot_of(session.id)].reset();
}

}  // namespace muster::rendezvous
