#include "rendezvous/server/daemon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/time.hpp"
#include "rendezvous/protocol/policy_values.hpp"
#include "rendezvous/server/operator_requests.hpp"

namespace muster::rendezvous {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Kind = Connection::Ending::Kind;

constexpr Duration kEndingPatience = std::chrono::seconds(2);
constexpr Duration kAcceptPause = std::chrono::milliseconds(200);
constexpr int kAcceptsAtOnce = 256;  // then the other connections have their turn

std::uint32_t in_ms(Duration duration) {
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

/// Ends whoever needs longer than `limit` for its half of the handshake.
std::function<void(Session&)> end_slow_handshakes(Duration limit) {
  return [limit](Session& session) {
    session.refuse(
        {RefusalCode::limit_reached, fmt::format("the handshake took longer than {}", human(limit))});
  };
}

}  // namespace

Daemon::Daemon(asio::io_context& io, DaemonOptions options)
    : io_(io),
      options_(std::move(options)),
      silent_(io, options_.handshake_timeout, end_slow_handshakes(options_.handshake_timeout)),
      greeted_(io, options_.handshake_timeout, end_slow_handshakes(options_.handshake_timeout)),
      established_(io, options_.heartbeat_timeout,
                   [this](Session& session) {
                     session.end({Kind::silent, fmt::format("nothing was heard for {}",
                                                            human(options_.heartbeat_timeout))});
                   }),
      ending_(io, kEndingPatience,
              [](Session& session) {
                session.end({Kind::closed, "closed by this side"});
              }),
      room_(io) {}

Daemon::~Daemon() { stop(); }

bool Daemon::all_over() const {
  const auto over = [](const auto& entry) { return entry.second->over(); };
  return !jobs_.empty() && std::all_of(jobs_.begin(), jobs_.end(), over);
}

std::optional<Error> Daemon::recover() {
  auto opened =
      Journal::open(io_, options_.log, options_.state_dir, HostedJob::now(), options_.journal_retry);
  if (!opened) return opened.error();
  journal_ = std::move(opened->journal);
  for (auto& recovered : opened->jobs) {
    const auto id = recovered.job.id();
    auto job = std::make_shared<HostedJob>(surroundings(), std::move(recovered.job),
                                           std::move(recovered.identity), std::move(recovered.history));
    jobs_[id] = job;
    job->come_back();
  }
  journal_->on_compaction([this] {
    forget_old_jobs();
    std::vector<SnapshotRecord> all;
    for (const auto& [id, job] : jobs_) all.push_back(job->snapshot());
    return all;
  });
  return std::nullopt;
}

Result<Endpoint> Daemon::listen() {
  if (!options_.state_dir.empty())
    if (const auto error = recover()) return *error;
  auto acceptors = options_.listen_fds.empty() ? listen_on(io_, options_.listen)
                                               : take_listeners(io_, options_.listen_fds);
  if (!acceptors) return acceptors.error();
  acceptors_ = std::move(*acceptors);
  for (auto& acceptor : acceptors_) {
    error_code error;
    acceptor.non_blocking(true, error);
    if (error) return errno_error("listening on " + options_.listen.text(), error.value());
  }
  for (auto& acceptor : acceptors_) asio::co_spawn(io_, accept_all(acceptor, stopped_), asio::detached);
  return Endpoint{options_.listen.host, acceptors_.front().local_endpoint().port()};
}

void Daemon::stop() {
  if (std::exchange(*stopped_, true)) return;
  if (journal_) journal_->flush();
  for (auto& acceptor : acceptors_) {
    error_code ignored;
    acceptor.close(ignored);
  }
  room_.cancel();
  for (auto* queue : {&silent_, &greeted_, &established_, &ending_})
    while (auto* session = queue->oldest()) session->abort();
  jobs_.clear();
  previous_jobs_.clear();
}

// Once `stopped` is set, nothing else here may be touched: the daemon is gone.
asio::awaitable<void> Daemon::accept_all(TcpAcceptor& acceptor, std::shared_ptr<bool> stopped) {
  while (!*stopped) {
    co_await wait_for_room();
    if (*stopped) co_return;
    error_code error;
    co_await acceptor.async_wait(TcpAcceptor::wait_read, asio::redirect_error(asio::use_awaitable, error));
    if (*stopped) co_return;
    if (!error) error = accept_some(acceptor);
    if (!error) continue;
    // No file descriptors or no memory: what waits in the listen queue is taken up when there are some again.
    if (notices_.let_through("accept", "", HostedJob::now()))
      options_.log->warn("cannot accept a connection: {}; trying again", errno_text(error.value()));
    asio::steady_timer pause(io_, kAcceptPause);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

// One in each turn of the event loop would wait behind the talk with everybody who is there already, while the
// listen queue overflows: whoever finds it full tries again after a second, then after two, then after four.
error_code Daemon::accept_some(TcpAcceptor& acceptor) {
  for (int accepted = 0; accepted < kAcceptsAtOnce && room(); ++accepted) {
    error_code error;
    auto socket = acceptor.accept(error);
    if (error == asio::error::would_block) break;
    if (error == asio::error::connection_aborted) continue;
    if (error) return error;
    take(std::move(socket));
  }
  return {};
}

// With too many half-open handshakes the next ones stay in the listen queue, and the one that was silent longest
// makes room when it had its time: a flood of silent connections slows the others down and does not shut them
// out. Who has said who it is may be slow: with thousands at once it is this daemon that they wait for.
asio::awaitable<void> Daemon::wait_for_room() {
  const auto stopped = stopped_;
  while (!*stopped && !room()) {
    const auto patience = options_.half_open_patience - silent_.oldest_age();
    if (patience <= Duration(0)) {
      silent_.oldest()->refuse(
          {RefusalCode::limit_reached, "too many handshakes at once, and this one is slow"});
      continue;
    }
    room_.expires_after(patience);
    error_code ignored;  // cancelled: there is room
    co_await room_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

void Daemon::take(TcpSocket socket) {
  error_code error;
  ++counters_.connections;
  const auto remote = socket.remote_endpoint(error);
  if (error) return;  // it is gone already
  auto connection = secured_connection(std::move(socket), text(remote), options_.tls, "");
  const auto* token = options_.token ? &*options_.token : nullptr;
  Session::Owner& owner = *this;
  const auto session = std::make_shared<Session>(owner, std::move(connection), token, silent_);
  session->start();
  while (ending_.size() > options_.max_half_open)  // those do not close their side
    ending_.oldest()->end({Kind::closed, "closed by this side"});
  if (sessions() > options_.max_sessions)
    session->refuse({RefusalCode::limit_reached,
                     fmt::format("this daemon has its {} connections already", options_.max_sessions)});
}

std::variant<Welcome, Refused> Daemon::admit(Session& session, const Hello& hello) {
  room_.cancel();
  Welcome welcome{0, in_ms(options_.heartbeat_interval), in_ms(options_.heartbeat_timeout),
                  options_.standing};
  if (hello.role == PeerRole::operator_) return welcome;
  auto found = job_for(hello);
  if (auto* refused = std::get_if<Refused>(&found)) return *refused;
  const auto& job = std::get<std::shared_ptr<HostedJob>>(found);
  if (auto refused = job->refusal(hello)) return *refused;
  job->attach(session.shared_from_this());
  welcome.job_incarnation = job->identity().incarnation;
  return welcome;
}

std::variant<std::shared_ptr<HostedJob>, Refused> Daemon::job_for(const Hello& hello) {
  forget_old_jobs();
  for (const Jobs* runs : {&jobs_, &previous_jobs_})
    if (const auto run = runs->find(hello.job);
        run != runs->end() && run->second->knows(hello.node, hello.incarnation))
      return run->second;
  const auto ended_run = ended_run_of(hello);
  if (ended_run && ended_run->welcome_late(hello)) return ended_run;
  if (ended_run)
    return Refused{
        RefusalCode::job_over,
        fmt::format(
            "the run of job {} in which this agent was is over, and another agent was its node '{}' in "
            "the end: give each node a name of its own",
            hello.job, hello.node)};
  const auto found = jobs_.find(hello.job);
  if (found != jobs_.end() && found->second->over() && found->second->turned_away(hello))
    return Refused{
        RefusalCode::job_over,
        fmt::format("job {} is over; another agent of node '{}' was in it to its end, and this one is not "
                    "taken for the start of a new run: give each node a name of its own",
                    hello.job, hello.node)};
  if (found != jobs_.end()) found->second->make_way(hello, 5 * options_.heartbeat_interval / 2);
  if (found != jobs_.end() && !found->second->over()) return found->second;
  const auto policy = policy_from_values(hello.policy);
  if (!policy) return Refused{RefusalCode::incompatible_policy, policy.error().sentence()};
  if (found == jobs_.end() && jobs_.size() >= options_.max_jobs)
    return Refused{RefusalCode::limit_reached,
                   fmt::format("this daemon has its {} jobs already", options_.max_jobs)};
  if (found != jobs_.end()) previous_jobs_[hello.job] = found->second;
  auto places = found == jobs_.end() ? SeatMemory() : found->second->job().places();
  auto job = std::make_shared<HostedJob>(
      surroundings(), Job(hello.job, *policy, std::move(places)),
      JobIdentity{
          hello.job_incarnation ? hello.job_incarnation : random_number(), unix_time_ms(), hello.policy, {}});
  if (journal_) journal_->append_snapshot(job->snapshot());
  jobs_[hello.job] = job;
  return job;
}

/// The run in which this agent was, if it is over.
std::shared_ptr<HostedJob> Daemon::ended_run_of(const Hello& hello) const {
  if (hello.job_incarnation == 0) return nullptr;
  for (const Jobs* runs : {&jobs_, &previous_jobs_})
    if (const auto run = runs->find(hello.job); run != runs->end() && run->second->over() &&
                                                run->second->identity().incarnation == hello.job_incarnation)
      return run->second;
  return nullptr;
}

void Daemon::forget_old_jobs() {
  const auto old = [&](const auto& entry) {
    const auto since = entry.second->over_since();
    return since && HostedJob::now() - *since > options_.finished_job_kept;
  };
  std::erase_if(jobs_, old);
  std::erase_if(previous_jobs_, old);
}

void Daemon::on_agent_message(Session& session, const AgentMessage& message) {
  const auto job = session.job();
  if (job) job->take(session, message);
}

OperatorReply Daemon::on_operator_request(const OperatorRequest& request) {
  forget_old_jobs();
  return answer_operator(jobs_, request);
}

void Daemon::on_refusal(const Session& session, const Refused& refused) {
  room_.cancel();
  log_refusal(session.peer(), refused.reason);
}

void Daemon::log_refusal(const std::string& peer, const std::string& reason) {
  ++counters_.refusals;
  const auto address = peer.substr(0, peer.rfind(':'));
  const auto held_back = notices_.let_through(address, reason, HostedJob::now());
  if (!held_back) return;
  const auto more = *held_back > 0 ? fmt::format(" (and {} times before)", *held_back) : "";
  options_.log->warn("refused {}: {}{}{}", peer, reason, more,
                     notices_.last_about(address) ? "; no more of this address are named for a while" : "");
}

void Daemon::on_end(Session& session, const Connection::Ending& ending) {
  room_.cancel();
  if (ending.kind == Kind::not_secured) log_refusal(session.peer(), ending.why);
  if (const auto job = session.job()) job->detach(session, ending);
}

}  // namespace muster::rendezvous
