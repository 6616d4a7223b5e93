// Any bytes, in any pieces, to the store's request decoder and engine, and to the client's reply decoder.
//
// First byte: the size of the pieces. Held: scanning in pieces and at once agree; a whole request fits what
// was sent, and written again gives the same bytes; the engine's books balance.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/codec.hpp"
#include "rendezvous/store/engine.hpp"
#include "rendezvous/store/stall.hpp"

namespace {

using namespace muster::rendezvous;
using State = ScanResult::State;

void hold(bool truth) {
  if (!truth) std::abort();
}

StoreLimits small_limits() {
  StoreLimits limits;
  limits.key_bytes_max = 64;
  limits.value_bytes_max = 1024;
  limits.request_keys_max = 32;
  limits.request_bytes_max = 8192;
  limits.stored_bytes_max = 64 * 1024;
  limits.reply_bytes_max = 64 * 1024;
  return limits;
}

/// Scans one request that grows by `piece` bytes at a time.
State scan_in_pieces(std::string_view bytes, std::size_t piece, StoreDialect dialect, StoreScanner& scanner) {
  State state = State::partial;
  for (std::size_t size = 0; state == State::partial; size += piece) {
    state = scanner.scan(bytes.substr(0, size), dialect, small_limits()).state;
    if (size >= bytes.size()) break;
  }
  return state;
}

void requests(std::string_view bytes, std::size_t piece) {
  StoreDialect dialect = StoreDialect::undecided;
  if (detect_dialect(bytes, &dialect).state != State::whole) return;
  StoreEngine engine(small_limits());
  std::vector<StoreConnectionId> clients{engine.connect(), engine.connect(), engine.connect()};
  StoreWoken woken;
  for (std::size_t turn = 0; !bytes.empty(); ++turn) {
    StoreScanner at_once;
    const auto found = at_once.scan(bytes, dialect, small_limits());
    StoreScanner in_pieces;
    hold(scan_in_pieces(bytes, piece, dialect, in_pieces) == found.state);
    if (found.state != State::whole) {
      hold((found.state == State::bad) == !found.why.empty());
      break;
    }
    hold(in_pieces.size() == at_once.size() && at_once.size() <= bytes.size());
    StoreRequest request;
    parse_request(at_once.op(), bytes.substr(0, at_once.size()), request);
    std::string again;
    const bool released = append_request(dialect, request, again);
    hold(!released || again == bytes.substr(0, at_once.size()));
    hold(released || dialect == StoreDialect::a);
    bytes.remove_prefix(at_once.size());
    StoreOutput reply;
    auto& client = clients[turn % clients.size()];
    woken.clear();
    if (engine.handle(client, request, reply, woken)) {
      engine.disconnect(client, woken);
      client = engine.connect();
    }
    const auto answer = reply.text();
    for (std::size_t left = answer.size(); left > 0;) {
      std::string_view next[1];
      hold(reply.next(next, piece) == 1 && answer.substr(answer.size() - left).starts_with(next[0]));
      reply.sent(next[0].size());
      left -= next[0].size();
    }
    hold(reply.empty());
    for (const auto id : woken) hold(!engine.waiting(id));
    hold(engine.stored_bytes() <= small_limits().stored_bytes_max);
  }
  engine.next_period();
  StallView view{engine.diagnosis(), "10.0.0.1", 1, true};
  describe_stall(view, StoreRound{1, 4, {{0, 100}}});
  for (const auto client : clients) engine.disconnect(client, woken);
}

void replies(std::string_view bytes) {
  for (int op = 0; op <= static_cast<int>(StoreOp::watch_key); ++op) {
    StoreRequest request;
    request.op = static_cast<StoreOp>(op);
    request.keys.resize(3);
    StoreReply reply;
    std::size_t size = 0;
    const auto found = parse_reply(request, bytes, 4096, reply, &size);
    if (found.state == State::whole) hold(size <= bytes.size());
    if (found.state == State::partial) hold(size > bytes.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  requests(bytes, std::size_t{data[0]} + 1);
  replies(bytes);
  return 0;
}
