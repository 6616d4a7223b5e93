#include "agent/served_stores.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/bare_address.hpp"
#include "base/time.hpp"

namespace muster::agent {

namespace {

/// A wait is known to be older than this many periods once one more has begun.
constexpr unsigned kPeriodsToStall = 4;
constexpr std::size_t kStallsKept = 16;
constexpr Duration kStallLook = std::chrono::milliseconds(250);

std::set<boost::asio::ip::address> addresses_in(const std::vector<std::string>& texts) {
  std::set<boost::asio::ip::address> addresses;
  for (const std::string& text : texts) {
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(text, error);
    if (!error) addresses.insert(bare(address));
  }
  return addresses;
}

}  // namespace

struct ServedStores::Served {
  Served(rendezvous::StoreServer store, const boost::asio::any_io_executor& executor)
      : server(std::move(store)), timer(executor), end_timer(executor) {}

  rendezvous::StoreServer server;
  LedRound round;
  boost::asio::steady_timer timer;
  boost::asio::steady_timer end_timer;               ///< of a stall that was told
  unsigned periods = 0;                              ///< since the round began
  unsigned periods_to_report = kPeriodsToStall + 1;  ///< doubles: a long stall is told now and then
  std::string last_report;
  bool crowd_told = false;
  std::vector<rendezvous::StoreRound::Node> nodes;
};

ServedStores::ServedStores(boost::asio::any_io_executor executor, ServedStoresOptions options)
    : executor_(std::move(executor)), options_(std::move(options)) {}

ServedStores::~ServedStores() = default;

Result<boost::asio::ip::tcp::acceptor> ServedStores::next_listener() {
  if (options_.ports.any()) return rendezvous::open_listener(executor_, options_.address, std::uint16_t{0});
  if (!shared_) {
    auto bound = rendezvous::open_listener(executor_, options_.address, options_.ports);
    if (!bound) return bound.error();
    shared_.emplace(std::move(*bound));
  }
  return rendezvous::share_listener(executor_, *shared_);
}

Result<std::uint16_t> ServedStores::open(int number) {
  auto listener = next_listener();
  if (!listener) return listener.error();
  rendezvous::StoreServer server(executor_, std::move(*listener));
  if (options_.notice) server.on_notice(options_.notice);
  // Who comes before the round has begun, and it is known who belongs to it, waits in the backlog.
  if (const auto started = server.start(rendezvous::StoreServer::Accepting::later); !started)
    return started.error();
  // No worker of the old round is alive here; those of other nodes that still come are not for the next one.
  if (shared_)
    for (const auto& [older, served] : stores_) served->server.stop_accepting();
  const std::uint16_t port = server.local_endpoint().port();
  stores_.insert_or_assign(number, std::make_unique<Served>(std::move(server), executor_));
  return port;
}

void ServedStores::begin_round(int number, LedRound round) {
  Served& served = *stores_.at(number);
  served.round = std::move(round);
  if (served.round.round == expected_in_) {
    served.server.serve_only(addresses_in(expected_));
    served.nodes = nodes_;
  }
  if (const auto begun = served.server.begin_accepting(); !begun) say(begun.error().sentence());
  if (options_.stall_after > Duration::zero()) watch(number);
}

void ServedStores::expect_clients(int round, std::vector<std::string> addresses,
                                  std::vector<rendezvous::StoreRound::Node> nodes) {
  expected_in_ = round;
  expected_ = std::move(addresses);
  nodes_ = std::move(nodes);
}

void ServedStores::watch(int number) {
  Served& served = *stores_.at(number);
  served.timer.expires_after(options_.stall_after / kPeriodsToStall);
  served.timer.async_wait([this, number](const boost::system::error_code& error) {
    if (error || !stores_.contains(number)) return;
    look_for_stall(number);
    watch(number);
  });
}

std::optional<std::string> ServedStores::stall_of(Served& served) {
  rendezvous::StoreRound round;
  round.round = served.round.round;
  round.world_size = served.round.world_size;
  round.nodes = served.nodes;
  for (const auto& worker : served.round.local_workers())
    round.local_workers.push_back({worker.rank, worker.pid});
  return served.server.stall(round, kPeriodsToStall + 1, true);
}

void ServedStores::look_for_stall(int number) {
  Served& served = *stores_.at(number);
  ++served.periods;
  served.server.next_period();
  look_for_crowd(served);
  if (served.periods < served.periods_to_report) return;
  const auto stall = stall_of(served);
  if (!stall || *stall == served.last_report) return;
  const bool is_new = served.last_report.empty();
  served.last_report = *stall;
  served.periods_to_report = 2 * served.periods;
  say("round " + std::to_string(served.round.round) + " does not get on: " + *stall);
  note_stall(served.round.round, *stall);
  if (is_new) watch_for_end(number);
}

/// Often, so that a job that is stopped soon after is not said to have been stalled.
void ServedStores::watch_for_end(int number) {
  Served& served = *stores_.at(number);
  served.end_timer.expires_after(std::min<Duration>(kStallLook, options_.stall_after / kPeriodsToStall));
  served.end_timer.async_wait([this, number](const boost::system::error_code& error) {
    if (error || !stores_.contains(number)) return;
    Served& stalled = *stores_.at(number);
    if (stall_of(stalled)) return watch_for_end(number);
    stalled.last_report.clear();
    say("round " + std::to_string(stalled.round.round) + " gets on");
    for (Stall& told : stalls_)
      if (told.round == stalled.round.round && told.over_unix_ms == 0) told.over_unix_ms = unix_time_ms();
  });
}

/// Said at once: whoever waits for keys that another job has overwritten may do so in vain.
void ServedStores::look_for_crowd(Served& served) {
  if (served.crowd_told) return;
  const auto crowd = served.server.crowd(served.round.world_size, kPeriodsToStall + 1);
  if (!crowd) return;
  served.crowd_told = true;
  say("round " + std::to_string(served.round.round) + ": " + *crowd);
  note_stall(served.round.round, *crowd);
  stalls_.back().over_unix_ms = stalls_.back().unix_ms;  // it may get on all the same
}

void ServedStores::note_stall(int round, const std::string& sentence) {
  if (stalls_.size() == kStallsKept) stalls_.erase(stalls_.begin());
  stalls_.push_back({round, unix_time_ms(), sentence});
}

void ServedStores::say(const std::string& sentence) const {
  if (options_.notice) options_.notice(sentence);
}

void ServedStores::close(int number) { stores_.erase(number); }

bool ServedStores::used(int number) const {
  const auto found = stores_.find(number);
  return found != stores_.end() && found->second->server.counters().connections_total > 0;
}

}  // namespace muster::agent
