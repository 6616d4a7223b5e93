#include "rendezvous/client/remote_link.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>

#include "rendezvous/client/connect.hpp"
#include "rendezvous/client/link_memory.hpp"
#include "rendezvous/client/link_session.hpp"
#include "rendezvous/protocol/policy_values.hpp"

namespace muster::rendezvous {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// Shared with the coroutine and the session that are under way, so that a link that goes leaves nothing
// dangling.
class RemoteLink::Conversation : public std::enable_shared_from_this<Conversation>,
                                 public LinkSession::Owner {
 public:
  Conversation(asio::io_context& io, RemoteLinkOptions options)
      : io_(io),
        options_(std::move(options)),
        wake_(io),
        farewell_limit_(io),
        farewell_notice_(io),
        random_(static_cast<unsigned>(random_number())) {
    if (options_.incarnation.empty()) options_.incarnation = fmt::format("{:016x}", random_number());
  }

  void receive_with(Receiver receiver) { receiver_ = std::move(receiver); }

  void start() {
    away_since_ = Clock::now();
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->stay_connected(); }, asio::detached);
  }

  void send(const AgentMessage& message) {
    memory_.note_sent(message, Clock::now());
    if (!session_ || !session_->open()) return;
    if (std::holds_alternative<Join>(message)) tell_addresses();
    session_->send(message);
  }

  void close() {
    receiver_ = nullptr;
    if (over() || !memory_.has_round() || !memory_.leaves()) return finish();
    // The others would stand still until this node's time to come back is over, so it is not enough to have sent it.
    farewell_until_ = Clock::now() + (standing_ ? options_.standing_farewell : options_.farewell);
    failures_ = 0;
    if (session_ && session_->open()) session_->ask_whether_read();
    farewell_limit_.expires_at(*farewell_until_);
    farewell_limit_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error) self->finish();
    });
    farewell_notice_.expires_after(options_.farewell_notice);
    farewell_notice_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error && !self->closed_) self->say_farewell_is_late();
    });
    wake_.cancel();
  }

  void on_all_read() override { finish(); }

  void drop() {
    receiver_ = nullptr;
    finish();
  }

  bool last_words_out() const { return closed_ && (!session_ || session_->ended()); }

  Statistics statistics() const {
    auto sum = statistics_;
    if (session_) add(session_->traffic(), sum);
    return sum;
  }

  // What the session says.
  void on_welcome(const Welcome& welcome) override {
    if (farewell_until_) {
      for (const auto& message : memory_.restatement(Clock::now())) session_->send(message);
      return session_->ask_whether_read();
    }
    standing_ = welcome.standing;
    job_incarnation_ = welcome.job_incarnation;
    if (was_connected_)
      notice("connected again to", fmt::format("after {}", human(Clock::now() - away_since_)));
    was_connected_ = true;
    failures_ = 0;
    next_notice_ = {};
    duplicate_.reset();
    tell_addresses();
    for (const auto& message : memory_.restatement(Clock::now())) session_->send(message);
  }

  void on_message(const DaemonMessage& message) override {
    if (const auto answer = memory_.answer_to(message, Clock::now()); !answer.empty()) {
      for (const auto& said : answer) session_->send(said);
      return;
    }
    memory_.note_received(message);
    if (memory_.over() && farewell_until_) return finish();
    if (memory_.over()) wake_.cancel();
    deliver(message);
  }

  void on_store_clients(const StoreClients& clients) override {
    if (options_.store_clients && receiver_) options_.store_clients(clients);
  }

  // A node may wait for long, and its network may give it another address meanwhile.
  void on_beat() override {
    if (options_.own_addresses && own_addresses() != addresses_told_) tell_addresses();
  }

  void on_refused(const Refused& refused) override {
    failure_ = Error{options_.endpoint.text(), refused.reason};
    was_refused_ = true;
    busy_ = refused.code == RefusalCode::limit_reached;
    if (busy_) return;
    if (farewell_until_) return finish();
    if (refused.code == RefusalCode::duplicate_node && may_be_a_dead_connection(refused)) return;
    on_message(refused);
  }

  void on_no_answer_yet() override {
    busy_ = false;
    failure_ = Error{options_.endpoint.text(), fmt::format("it takes connections and has not answered for {}",
                                                           human(options_.handshake_notice))};
    if (!was_connected_ && !duplicate_) say_failure();
  }

  void on_end(const Connection::Ending& ending, bool was_open) override {
    const bool refused = std::exchange(was_refused_, false);
    if (!refused) failure_ = Error{options_.endpoint.text(), ending.why};
    busy_ = busy_ && refused;
    failed_in_handshake_ = !was_open && !refused;
    add(session_->traffic(), statistics_);
    session_.reset();
    if (was_open) {
      away_since_ = Clock::now();
      if (!memory_.over() && !closed_ && !farewell_until_) notice("lost the connection to", failure_.why);
    }
    // What the files say does not change by waiting; in a job that runs somebody may be mending it.
    if (failed_in_handshake_ && !was_connected_ && ending.kind == Connection::Ending::Kind::not_secured)
      end_with(fmt::format("the rendezvous {} and this node do not trust each other: {}",
                           options_.endpoint.text(), ending.why));
    wake_.cancel();
  }

 private:
  asio::awaitable<void> stay_connected() {
    while (!over()) {
      auto socket =
          co_await connect_to(io_, options_.endpoint, until_deadline(options_.connect_timeout), stop_);
      if (over()) co_return;
      if (socket) {
        ++statistics_.connections;
        session_ = std::make_shared<LinkSession>(io_, std::move(*socket), hello(), timing(), security(),
                                                 shared_from_this());
        session_->start();
        while (session_ && !over()) co_await wait_until(Instant::max());
      } else {
        failure_ = socket.error();
        failed_in_handshake_ = busy_ = false;
        const bool wanted = !duplicate_ && !farewell_until_ && !waits_for_standing_daemon();
        if (options_.unreachable && wanted) options_.unreachable();
      }
      if (over()) co_return;
      if (out_of_time() && farewell_until_) co_return finish();
      if (out_of_time()) co_return duplicate_ ? on_message(*duplicate_) : give_up();
      co_await wait_until(Clock::now() + next_wait());
    }
  }

  bool waits_for_standing_daemon() const {
    const auto patience = std::min(options_.standing_patience, options_.resume_budget / 2);
    return standing_ && Clock::now() - away_since_ < patience;
  }

  asio::awaitable<void> wait_until(Instant when) {
    wake_.expires_at(when);
    boost::system::error_code ignored;  // cancelled: something has changed
    co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  Hello hello() const {
    auto policy = policy_values(options_.policy);
    policy.insert(policy.end(), options_.settings.begin(), options_.settings.end());
    return {PeerRole::agent,   options_.job,   options_.node,   options_.incarnation,
            std::move(policy), random_nonce(), job_incarnation_};
  }

  void tell_addresses() {
    if (!options_.own_addresses) return;
    addresses_told_ = own_addresses();
    session_->send(addresses_told_);
  }

  OwnAddresses own_addresses() const {
    OwnAddresses own{options_.own_addresses()};
    if (own.addresses.size() > kMaxOwnAddresses) own.addresses.clear();
    return own;
  }

  /// Whoever answers late is not waited for beyond the deadline.
  Duration until_deadline(Duration at_most) const {
    return std::clamp<Duration>(deadline() - Clock::now(), std::chrono::milliseconds(100), at_most);
  }
  LinkSession::Timing timing() const {
    return {until_deadline(options_.handshake_timeout), options_.handshake_notice, options_.linger};
  }
  LinkSession::Security security() const {
    return {options_.token ? &*options_.token : nullptr, options_.tls, options_.endpoint.host};
  }
  bool over() const { return closed_ || memory_.over(); }
  Instant deadline() const {
    if (farewell_until_) return *farewell_until_;
    const auto end = away_since_ + (was_connected_ ? options_.resume_budget : options_.join_deadline);
    return duplicate_ ? std::min(end, duplicate_since_ + options_.duplicate_patience) : end;
  }
  bool out_of_time() const { return Clock::now() >= deadline(); }

  // Exponential, with jitter, so that a thousand agents do not come back at the same moment; never beyond the
  // deadline, where one last try is made.
  Duration next_wait() {
    const auto wait = std::min(options_.first_retry * (1 << std::min(failures_++, 16)), options_.max_retry);
    const auto left = deadline() - Clock::now();
    // Who takes a connection and does not speak as a rendezvous is most likely none.
    const auto silence = failed_in_handshake_ ? std::chrono::seconds(3) : std::chrono::seconds(5);
    if (Clock::now() - away_since_ >= silence && !duplicate_ && !farewell_until_) say_failure();
    const auto jittered =
        wait / 2 +
        Duration(static_cast<std::int64_t>(static_cast<double>(wait.count()) / 2 * share_(random_)));
    return std::min<Duration>(jittered, left);
  }

  /// The longer it lasts the rarer.
  void say_failure() {
    const auto now = Clock::now();
    if (now < next_notice_) return;
    next_notice_ = now + std::max<Duration>(now - away_since_, std::chrono::seconds(5));
    notice(
        busy_ ? "not let in by" : "cannot reach",
        fmt::format("{}; trying for {} more", failure_.why, human(std::max<Duration>(deadline() - now, {}))));
  }

  /// An agent that was started anew after a crash finds its old connection there until the daemon gives that up.
  bool may_be_a_dead_connection(const Refused& refused) {
    const auto now = Clock::now();
    if (!duplicate_) {
      duplicate_since_ = now;
      notice("refused by", fmt::format("{}; trying for {} more, in case that one is gone", refused.reason,
                                       human(options_.duplicate_patience)));
    }
    duplicate_ = refused;
    return now < duplicate_since_ + options_.duplicate_patience;
  }

  void say_farewell_is_late() {
    const bool connected = session_ && session_->open();
    notice("this node leaves, and cannot tell",
           fmt::format("{}; trying for {} more", connected ? "it does not answer" : failure_.why,
                       human(std::max<Duration>(*farewell_until_ - Clock::now(), {}))));
  }

  void give_up() {
    end_with(fmt::format("the rendezvous {} could not be reached {} {}: {}", options_.endpoint.text(),
                         was_connected_ ? "again within" : "within",
                         human(was_connected_ ? options_.resume_budget : options_.join_deadline),
                         failure_.why));
  }

  void end_with(const std::string& reason) {
    on_message(
        JobEnded{Outcome{OutcomeKind::rendezvous_failed, reason, {}, {}, options_.policy.max_restarts}});
  }

  static void add(const LinkSession::Traffic& traffic, Statistics& sum) {
    sum.messages_sent += traffic.messages_sent;
    sum.messages_received += traffic.messages_received;
    sum.bytes_sent += traffic.bytes_sent;
    sum.bytes_received += traffic.bytes_received;
  }

  void deliver(const DaemonMessage& message) {
    const auto receiver = receiver_;  // it may close the link
    if (receiver) receiver(message);
  }

  void notice(const char* what, const std::string& more) {
    if (options_.notice)
      options_.notice(fmt::format("{} the rendezvous at {}: {}", what, options_.endpoint.text(), more));
  }

  void finish() {
    if (std::exchange(closed_, true)) return;
    if (session_) session_->close();
    stop_->stop();
    wake_.cancel();
    farewell_limit_.cancel();
    farewell_notice_.cancel();
  }

  asio::io_context& io_;
  RemoteLinkOptions options_;
  LinkMemory memory_;
  std::shared_ptr<LinkSession> session_;
  asio::steady_timer wake_;
  asio::steady_timer farewell_limit_;
  asio::steady_timer farewell_notice_;
  std::shared_ptr<ConnectStop> stop_ = std::make_shared<ConnectStop>();
  Receiver receiver_;
  Error failure_{"", ""};
  OwnAddresses addresses_told_;
  Instant away_since_{};
  Instant next_notice_{};
  std::optional<Refused> duplicate_;  ///< the last word of a daemon where another agent has this node's name
  Instant duplicate_since_{};
  std::optional<Instant> farewell_until_;  ///< closed, and the daemon does not know yet that this node leaves
  std::uint64_t job_incarnation_ = 0;      ///< of the run in which it was last
  bool was_connected_ = false;
  bool standing_ = false;             ///< the daemon that was there last
  bool was_refused_ = false;          ///< the connection that is ending now
  bool failed_in_handshake_ = false;  ///< the last try
  bool busy_ = false;                 ///< the last try was refused for want of room
  bool closed_ = false;
  int failures_ = 0;
  std::minstd_rand random_;
  std::uniform_real_distribution<double> share_{0, 1};
  Statistics statistics_;
};

RemoteLink::RemoteLink(asio::io_context& io, RemoteLinkOptions options)
    : conversation_(std::make_shared<Conversation>(io, std::move(options))) {}

RemoteLink::~RemoteLink() { conversation_->drop(); }

void RemoteLink::on_message(Receiver receiver) { conversation_->receive_with(std::move(receiver)); }
void RemoteLink::start() { conversation_->start(); }
void RemoteLink::send(AgentMessage message) { conversation_->send(message); }
void RemoteLink::close() { conversation_->close(); }
bool RemoteLink::last_words_out() const { return conversation_->last_words_out(); }
RemoteLink::Statistics RemoteLink::statistics() const { return conversation_->statistics(); }

}  // namespace muster::rendezvous
