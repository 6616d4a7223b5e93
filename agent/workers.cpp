#include "agent/workers.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "agent/process/arguments.hpp"
#include "agent/process/proc_files.hpp"
#include "agent/process/spawn.hpp"
#include "agent/process/worker_environment.hpp"
#include "base/time.hpp"

namespace muster::agent {

Workers::Workers(boost::asio::any_io_executor executor, WorkersOptions options, Guard& guard,
                 Descendants& descendants, StoreUsed store_used, Emit emit)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      guard_(guard),
      descendants_(descendants),
      store_used_(std::move(store_used)),
      emit_(std::move(emit)),
      terminal_(STDIN_FILENO),
      no_input_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  if (!no_input_) throw ErrorException(errno_error("/dev/null", errno));
  descendants_.on_child_changed([this] { child_changed(); });
}

void Workers::child_changed() {
  for (Slot& slot : slots_) {
    if (!slot.process || !slot.process->running()) continue;
    if (options_.local_workers == 1) terminal_.child_changed(slot.process->pid());
    slot.process->child_changed();
    if (slot.process->lingers() && !descendants_.any_left_of(kin_of(slot))) slot.process->end_rest();
  }
}

// All forks first, the reading of output after them: what is registered with Asio is registered again in each
// forked child.
void Workers::start(const rendezvous::Assignment& assignment, const std::string& channel) {
  assignment_ = assignment;
  channel_ = channel;
  slots_.clear();
  forget_old_rounds();
  slots_.reserve(static_cast<std::size_t>(options_.local_workers));
  const Result<void> round_logs = open_round_logs();
  for (int local_rank = 0; local_rank < options_.local_workers; ++local_rank) {
    slots_.push_back(new_slot(local_rank));
    const Result<void> started = round_logs ? start_one(slots_.back()) : round_logs;
    if (started) continue;
    failed_to_start(slots_.back(), started.error());
    break;
  }
  for (Slot& slot : slots_)
    if (slot.process) watch(slot);
}

// Whole rounds, so that each round that is told of has all its workers.
void Workers::forget_old_rounds() {
  while (records_.size() > kMaxOldRecords) {
    const auto next = std::find_if(records_.begin(), records_.end(), [this](const WorkerRecord& record) {
      return record.round != records_.front().round;
    });
    records_left_out_ += static_cast<int>(next - records_.begin());
    records_.erase(records_.begin(), next);
  }
}

Result<void> Workers::open_round_logs() {
  RoundLogs::Round round;
  round.name.job = options_.run_id;
  round.name.node = options_.node;
  round.name.host = options_.host;
  round.name.role = options_.role;
  round.name.round = assignment_.round;
  round.name.attempt = assignment_.restart_count;
  round.folder = options_.log_folder;
  round.first_rank = assignment_.first_rank;
  round.local_workers = options_.local_workers;
  round.world_size = assignment_.world_size;
  logs_ = std::make_unique<RoundLogs>(executor_, options_.output, std::move(round));
  return logs_->open();
}

Workers::Slot Workers::new_slot(int local_rank) {
  const int rank = assignment_.first_rank + local_rank;
  Slot slot;
  slot.local_rank = local_rank;
  slot.record = records_.size();
  if (!options_.log_folder.empty())
    slot.folder = options_.log_folder / ("round-" + std::to_string(assignment_.round)) /
                  ("rank-" + std::to_string(rank));
  slot.log = std::make_unique<WorkerLog>(executor_, logs_->of(local_rank));

  WorkerRecord record;
  record.rank = rank;
  record.local_rank = local_rank;
  record.round = assignment_.round;
  record.log_path = slot.log->stderr_path();
  records_.push_back(std::move(record));
  return slot;
}

Result<void> Workers::start_one(Slot& slot) {
  if (const auto opened = slot.log->open(); !opened) return opened.error();
  std::error_code no_error_file;  // the worker finds out by itself
  if (!slot.folder.empty()) std::filesystem::create_directories(slot.folder, no_error_file);
  SpawnRequest request;
  request.executable = options_.executable;
  request.arguments = with_local_rank(options_.arguments, slot.local_rank);
  request.environment = environment_of(slot);
  // A single worker keeps the terminal, for debuggers; several would take each other's input.
  request.stdin_fd = options_.local_workers == 1 ? STDIN_FILENO : no_input_.get();
  request.stdout_fd = slot.log->child_stdout_fd();
  request.stderr_fd = slot.log->child_stderr_fd();
  request.descriptor_limit = options_.descriptor_limit;
  request.guard_fd = guard_.fd();
  request.cgroup_entrance = guard_.cgroup_entrance();
  request.cpus = spot_of(slot).cpus;
  const auto pid = spawn(executor_, request);
  if (!pid) return pid.error();
  auto process = WorkerProcess::adopt(executor_, *pid);
  if (!process) {
    ::kill(-*pid, SIGKILL);
    return process.error();
  }
  slot.process = std::move(*process);
  descendants_.worker_started(*pid);
  records_[slot.record].pid = *pid;
  records_[slot.record].started_unix_ms = unix_time_ms();
  emit_(WorkerStarted{slot.local_rank, *pid, std::chrono::steady_clock::now()});
  return {};
}

std::vector<std::string> Workers::environment_of(const Slot& slot) const {
  WorkerPlace place;
  place.local_rank = slot.local_rank;
  place.local_workers = options_.local_workers;
  place.role = options_.role;
  place.node = options_.node;
  place.run_id = options_.run_id;
  if (!slot.folder.empty()) place.error_file = slot.folder / "error.json";
  place.agent_mark = guard_.mark();
  place.channel = channel_;
  place.agent_store = options_.agent_store;
  place.usable_cpus = options_.usable_cpus;
  place.visible_devices = spot_of(slot).visible_devices;
  place.virtual_local_rank = options_.virtual_local_rank;
  return worker_environment(options_.environment, assignment_, place);
}

WorkerSpot Workers::spot_of(const Slot& slot) const {
  const auto index = static_cast<std::size_t>(slot.local_rank);
  return index < options_.spots.size() ? options_.spots[index] : WorkerSpot{};
}

void Workers::watch(Slot& slot) {
  slot.log->started();
  slot.process->on_end([this, &slot](ExitCause cause) { ended(slot, std::move(cause)); },
                       [this, &slot] { return rest_may_linger(slot); });
}

// A shell that does not exec dies of the signal at once; the program that it ran has the rest of the grace, as if the
// signal had been its own from the start.
bool Workers::rest_may_linger(Slot& slot) {
  slot.main_ended_ms = unix_time_ms();
  const WorkerKin kin = kin_of(slot);
  if (slot.stop_signal == 0 || slot.killed_by_us || !descendants_.any_left_of(kin)) return false;
  if (!slot.whole_group_has_it && !slot.process->signal_group(slot.stop_signal)) return false;
  descendants_.signal_strays_of(kin, slot.stop_signal);
  emit_(MainEnded{slot.local_rank});
  return true;
}

WorkerKin Workers::kin_of(const Slot& slot) const {
  const WorkerRecord& record = records_[slot.record];
  return {record.pid, record.round, record.rank};
}

void Workers::ended(Slot& slot, ExitCause cause) {
  WorkerRecord& record = records_[slot.record];
  record.ended_unix_ms = slot.main_ended_ms;
  if (terminal_.lent() && cause == ExitCause::signalled(SIGINT)) emit_(StopSignal{SIGINT});
  terminal_.take_back();
  if (cause == ExitCause::signalled(SIGKILL) && !slot.killed_by_us) cause.evidence = oom_.since_last_time();
  record.end = cause;
  descendants_.worker_ended(record.pid, record.round, record.rank);
  guard_.group_is_gone(record.pid);
  emit_(WorkerEnded{slot.local_rank, std::move(cause), record.ended_unix_ms, slot.ended_unasked});
  slot.log->finish(options_.last_output_limit, [this, &slot] { output_taken(slot); });
}

void Workers::output_taken(const Slot& slot) {
  const auto silent = std::chrono::steady_clock::now() - slot.log->last_output();
  records_[slot.record].last_output_unix_ms =
      unix_time_ms() - std::chrono::duration_cast<std::chrono::milliseconds>(silent).count();
  records_[slot.record].lost_log_bytes = slot.log->dropped_bytes();
  WorkerOutput output;
  output.local_rank = slot.local_rank;
  output.initialised = store_used_();
  if (!slot.folder.empty()) {
    if (auto file = read_error_file(slot.folder / "error.json")) {
      output.message = std::move(file->message);
      output.permanent = file->permanent;
    }
  }
  output.last_lines = slot.log->last_stderr_lines();
  output.log_path = slot.log->stderr_path();
  emit_(std::move(output));
}

void Workers::failed_to_start(const Slot& slot, const Error& error) {
  WorkerRecord& record = records_[slot.record];
  record.started_unix_ms = record.ended_unix_ms = unix_time_ms();
  record.end = ExitCause::start_failed(error.error_number);
  record.log_path.clear();
  emit_(WorkerEnded{slot.local_rank, *record.end, record.ended_unix_ms});
  WorkerOutput output;
  output.local_rank = slot.local_rank;
  output.message = error.sentence();
  emit_(std::move(output));
}

Result<void> Workers::signal(const SignalWorker& wanted) {
  Slot& slot = slots_.at(static_cast<std::size_t>(wanted.local_rank));
  const bool kill = wanted.signal_number == SIGKILL;
  const bool lingers = slot.process->lingers();
  if (!std::exchange(slot.signalled, true)) slot.ended_unasked = slot.process->has_ended();
  if (kill && lingers) {
    kill_rest(slot);
    return {};
  }
  const bool whole_group = wanted.target == SignalTarget::whole_group || lingers;
  slot.killed_by_us = slot.killed_by_us || kill;
  if (!kill) {
    slot.stop_signal = wanted.signal_number;
    slot.whole_group_has_it = whole_group;
  }
  if (lingers) descendants_.signal_strays_of(kin_of(slot), wanted.signal_number);
  const auto send = whole_group ? &WorkerProcess::signal_group : &WorkerProcess::signal_main;
  const auto sent = (slot.process.get()->*send)(wanted.signal_number);
  // One that is stopped (SIGSTOP, a debugger's Ctrl-Z) would hear of it only when it goes on.
  if (sent && !kill) static_cast<void>((slot.process.get()->*send)(SIGCONT));
  return sent;
}

Result<void> Workers::inject(int local_rank, int signal_number) {
  return slots_.at(static_cast<std::size_t>(local_rank)).process->signal_main(signal_number);
}

void Workers::kill_rest(Slot& slot) {
  std::string who = descendants_.names_of_rest(kin_of(slot));
  if (!who.empty()) {
    records_[slot.record].killed_rest = who;
    emit_(RestKilled{slot.local_rank, std::move(who)});
  }
  descendants_.signal_strays_of(kin_of(slot), SIGKILL);
  slot.process->end_rest();
}

SignalPassedOn Workers::pass_on(int signal_number) {
  SignalPassedOn answer{signal_number};
  for (Slot& slot : slots_) {
    if (!slot.process || !slot.process->running() || slot.process->lingers()) continue;
    const bool told =
        minds_signal(slot.process->pid(), signal_number) && slot.process->signal_main(signal_number);
    ++(told ? answer.told : answer.spared);
  }
  return answer;
}

std::string Workers::state_of(int local_rank) const {
  return state_sentence(slots_.at(static_cast<std::size_t>(local_rank)).process->pid());
}

std::vector<pid_t> Workers::groups() const {
  std::vector<pid_t> found;
  for (const Slot& slot : slots_)
    if (slot.process && slot.process->running()) found.push_back(slot.process->pid());
  return found;
}

void Workers::judge(int local_rank, const ExitCause& cause) {
  records_[slots_.at(static_cast<std::size_t>(local_rank)).record].end = cause;
}

}  // namespace muster::agent
