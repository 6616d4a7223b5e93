#include "agent/agent.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <utility>

#include "agent/process/proc_files.hpp"
#include "base/endpoint.hpp"

namespace muster::agent {

const std::vector<int> kStopSignals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

namespace {

constexpr int kMostGuardsLost = 20;  // whoever kills them all is not to be fed for ever

bool is_ignored(int signal_number) {
  struct sigaction now {};
  return ::sigaction(signal_number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

RoundTimes times_of(const RoundRecord& record) {
  RoundTimes times{record.round, record.nodes, record.world_size, record.reason, {}};
  for (std::size_t index = 0; index < record.phases.size(); ++index)
    if (const auto& spent = record.phases[index])
      times.phases.push_back(
          {kRestartPhaseNames[index], std::chrono::duration<double, std::milli>(*spent).count()});
  return times;
}

WorkersOptions with_offer(WorkersOptions options, const rendezvous::NodeOffer& offer) {
  options.node = offer.node;
  options.host = offer.host;
  options.role = offer.role;
  options.local_workers = offer.local_workers;
  return options;
}

}  // namespace

Agent::Agent(boost::asio::io_context& io, AgentOptions options, rendezvous::Link& link, StoreHost& stores,
             Guard& guard)
    : io_(io),
      say_(std::move(options.say)),
      flush_(std::move(options.flush)),
      link_(link),
      stores_(stores),
      guard_(guard),
      stop_signals_(io),
      warning_signals_(io),
      guard_channel_(io),
      timer_(io),
      descendants_(io.get_executor()),
      supervisor_(options.supervisor),
      virtual_local_rank_(options.workers.virtual_local_rank),
      parent_(options.parent),
      workers_(
          io.get_executor(), with_offer(std::move(options.workers), options.supervisor.offer), guard,
          descendants_, [this] { return !open_stores_.empty() && stores_.used(open_stores_.front()); },
          [this](Event event) { take_of_workers(std::move(event)); }) {
  take_signals(options.stop_signals);
  // A closed pipe and a limit of file sizes are errors of a write: what is lost by them is counted and said.
  for (const int number : {SIGPIPE, SIGXFSZ})
    if (::signal(number, SIG_IGN) == SIG_ERR) throw ErrorException(errno_error("ignoring a signal", errno));
  watch_guard();
}

Agent::~Agent() = default;

void Agent::start(std::function<void(AgentResult)> done) {
  done_ = std::move(done);
  auto channel = WorkerChannel::open(io_.get_executor(), [this](Event event) { take(std::move(event)); });
  if (channel)
    channel_ = std::move(*channel);
  else
    carry_out(Say{channel.error().sentence()});
  link_.on_message([this](const rendezvous::DaemonMessage& message) { take(FromDaemon{message}); });
  link_.start();
  take(Begin{});
}

void Agent::take_signals(const std::vector<int>& stop_signals) {
  for (const int number : stop_signals)
    if (number != SIGHUP || !is_ignored(SIGHUP)) stop_signals_.add(number);
  for (const int number : {SIGUSR1, SIGUSR2})
    if (std::find(stop_signals.begin(), stop_signals.end(), number) == stop_signals.end() &&
        !is_ignored(number))
      warning_signals_.add(number);
  wait_for_signal();
  wait_for_warning();
}

void Agent::wait_for_warning() {
  warning_signals_.async_wait([this](const boost::system::error_code& error, int signal_number) {
    if (error) return;
    wait_for_warning();
    take(WarningSignal{signal_number});
  });
}

void Agent::wait_for_signal() {
  stop_signals_.async_wait([this](const boost::system::error_code& error, int signal_number) {
    if (error) return;
    wait_for_signal();
    if (stop_signal_unix_ms_ == 0) stop_signal_unix_ms_ = unix_time_ms();
    // The kernel gives it another parent before it sends the signal.
    take(StopSignal{signal_number, signal_number == SIGTERM && parent_ != 0 && ::getppid() != parent_});
  });
}

// The guard says nothing, so what can be read is the end of its end.
void Agent::watch_guard() {
  descendants_.spare(guard_.pid());
  const int channel = ::fcntl(guard_.fd(), F_DUPFD_CLOEXEC, 0);
  if (channel < 0) return carry_out(Say{errno_error("watching the guard process", errno).sentence()});
  guard_channel_.assign(channel);
  guard_channel_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [this](const boost::system::error_code& error) {
                              if (!error) replace_guard();
                            });
}

void Agent::replace_guard() {
  guard_channel_.close();
  if (++guards_lost_ > kMostGuardsLost)
    return carry_out(
        Say{"the guard process has ended " + std::to_string(guards_lost_) +
            " times, and no other one is started; if muster itself is killed with SIGKILL, what the "
            "workers started may stay"});
  descendants_.spare_no_more(guard_.pid());
  const auto ended = guard_.replace(workers_.groups());
  if (!ended)
    return carry_out(Say{"the guard process has ended, and no other one can be started (" +
                         ended.error().sentence() +
                         "); if muster itself is killed with SIGKILL, what the workers started may stay"});
  carry_out(
      Say{"the guard process, " + *ended + "; pid " + std::to_string(guard_.pid()) + " takes its place"});
  watch_guard();
}

// Effects may bring about events at once; those wait until the effects before them are carried out.
void Agent::take(Event event) {
  events_.push_back(std::move(event));
  if (stepping_) return;
  stepping_ = true;
  while (!events_.empty()) {
    const Event next = std::move(events_.front());
    events_.pop_front();
    const std::vector<Effect> effects = supervisor_.step(next, std::chrono::steady_clock::now());
    judge_end(next);
    for (const Effect& effect : effects) std::visit([this](const auto& known) { carry_out(known); }, effect);
  }
  stepping_ = false;
  arm_timer();
}

// What an ended worker said last counts before its end does.
void Agent::take_of_workers(Event event) {
  const auto* ended = std::get_if<WorkerEnded>(&event);
  if (ended && channel_) channel_->hear_last_words(ended->local_rank);
  take(std::move(event));
}

void Agent::judge_end(const Event& event) {
  if (const auto* ended = std::get_if<WorkerEnded>(&event); ended && !supervisor_.finished())
    workers_.judge(ended->local_rank, supervisor_.group().at(ended->local_rank).cause);
}

void Agent::arm_timer() {
  const auto wake_at = supervisor_.wake_at();
  if (wake_at == armed_for_) return;
  armed_for_ = wake_at;
  timer_.cancel();
  if (!wake_at) return;
  timer_.expires_at(*wake_at);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    armed_for_.reset();
    take(Tick{});
  });
}

void Agent::carry_out(const SendToDaemon& effect) { link_.send(effect.message); }

void Agent::carry_out(const StartWorkers& effect) {
  const rendezvous::Assignment& assignment = effect.assignment;
  // What is open now is the round's store alone.
  if (assignment.group_rank == 0 && !open_stores_.empty())
    stores_.begin_round(open_stores_.back(),
                        {assignment.round, assignment.world_size,
                         [this, round = assignment.round] { return workers_of(round); }});
  WorkerChannel::LocalRankOf who;
  if (virtual_local_rank_)
    who = [this, first_rank = assignment.first_rank](pid_t pid) { return local_rank_of(pid, first_rank); };
  if (channel_) channel_->start_round(assignment.round, supervisor_.group().size(), std::move(who));
  workers_.start(assignment, channel_ ? channel_->name() : "");
}

/// Where workers are not told their own. A main process is known, also when it is gone; what it started carries its RANK.
std::optional<int> Agent::local_rank_of(pid_t pid, int first_rank) const {
  const WorkerGroup& group = supervisor_.group();
  for (int local_rank = 0; local_rank < group.size(); ++local_rank)
    if (group.at(local_rank).pid == pid) return local_rank;
  const auto rank = parse_integer(started_with(pid, "RANK").value_or(""), 0, INT32_MAX);
  if (!rank) return std::nullopt;
  return static_cast<int>(*rank) - first_rank;
}

std::vector<LedRound::Worker> Agent::workers_of(int round) const {
  std::vector<LedRound::Worker> started;
  for (const WorkerRecord& record : workers_.records())
    if (record.round == round && record.pid > 0) started.push_back({record.rank, record.pid});
  return started;
}

void Agent::carry_out(const SignalWorker& effect) {
  if (const auto sent = workers_.signal(effect); !sent) carry_out(Say{sent.error().sentence()});
}

void Agent::carry_out(const PassOnSignal& effect) { take(workers_.pass_on(effect.signal_number)); }

void Agent::carry_out(const OpenStore& effect) {
  const auto port = stores_.open(effect.number);
  if (!port) return take(StoreFailed{port.error().sentence()});
  open_stores_.push_back(effect.number);
  take(StoreOpened{*port});
}

void Agent::carry_out(const CloseStore& effect) {
  stores_.close(effect.number);
  std::erase(open_stores_, effect.number);
}

void Agent::carry_out(const DescribeWorker& effect) {
  take(WorkerState{effect.local_rank, workers_.state_of(effect.local_rank)});
}

void Agent::carry_out(const SweepGroup& effect) {
  descendants_.sweep(effect.limit,
                     [this](std::vector<std::string> survivors) { take(GroupSwept{std::move(survivors)}); });
}

void Agent::carry_out(const AskToSave& effect) {
  assert(channel_);  // only a worker that listens is asked
  channel_->ask_to_save(effect.local_rank, effect.grace);
}

void Agent::carry_out(const InjectFault& effect) {
  if (effect.local_rank) {
    const auto sent = workers_.inject(*effect.local_rank, effect.signal_number);
    if (!sent) carry_out(Say{sent.error().sentence()});
    return;
  }
  if (flush_) flush_();
  if (::kill(::getpid(), effect.signal_number) != 0)
    return carry_out(
        Say{errno_error(signal_name(effect.signal_number) + " to this launcher", errno).sentence()});
  if (effect.signal_number == SIGKILL)
    carry_out(Say{"the first process of a container cannot kill itself (SIGKILL), so nothing happens"});
}

void Agent::carry_out(const Say& effect) {
  if (say_) say_(effect.sentence);
}

void Agent::carry_out(const Finish& effect) {
  AgentResult result;
  result.outcome = effect.outcome;
  result.stop_signal = effect.stop_signal;
  result.stop_signal_unix_ms = effect.stop_signal > 0 ? stop_signal_unix_ms_ : 0;
  result.stop_grace = effect.stop_grace;
  result.stop_signals = effect.stop_signals;
  result.survivors = effect.survivors;
  result.exit_code =
      effect.survivors.empty() ? exit_code_of(effect.outcome, effect.stop_signal) : kUncleanExitCode;
  result.workers = workers_.records();
  result.workers_left_out = workers_.records_left_out();
  for (const RoundRecord& round : supervisor_.rounds()) result.rounds.push_back(times_of(round));
  for (const int number : std::exchange(open_stores_, {})) stores_.close(number);
  link_.close();
  channel_.reset();
  descendants_.stop();
  timer_.cancel();
  stop_signals_.cancel();
  warning_signals_.cancel();
  guard_channel_.close();
  if (effect.survivors.empty()) guard_.all_is_over();
  boost::asio::post(io_, [done = std::move(done_), result = std::move(result)]() mutable {
    if (done) done(std::move(result));
  });
}

}  // namespace muster::agent
