#include "rendezvous/server/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <map>

namespace muster::rendezvous {
namespace {

std::optional<Error> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return std::nullopt;
}

std::optional<Error> sync_folder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return errno_error(folder, errno);
  return std::nullopt;
}

Result<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(path, errno);
  std::string content;
  std::array<char, 64 * 1024> buffer;
  while (true) {
    const auto size = ::read(fd.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno_error(path, errno, errno == EISDIR ? "move it away to start without" : "");
    if (size == 0) return Result<std::string>(boost::system::in_place_value, std::move(content));
    content.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

// What may happen to any disk at any time. All else is a mistake in how the daemon was started.
bool is_fault_of_disk(const Error& error) {
  constexpr std::array kFaults = {ENOSPC, EDQUOT, EFBIG, EROFS, EIO};
  return std::find(kFaults.begin(), kFaults.end(), error.error_number) != kFaults.end();
}

constexpr const char* kLostAtStart = "agents tell it what they have";
constexpr const char* kLostLater = "a restart of it will not know what happens from now on";

// Somebody has removed or moved it, or put another in its place: what is written would be found by nobody.
bool is_elsewhere(const UniqueFd& file, const std::string& path) {
  struct stat ours {};
  struct stat there {};
  if (!file || ::fstat(file.get(), &ours) != 0) return false;
  return ::stat(path.c_str(), &there) != 0 || ours.st_dev != there.st_dev || ours.st_ino != there.st_ino;
}

// The jobs as the records tell: the newest snapshot of each, and all later events stepped at their times.
class Replay {
 public:
  void take(JournalRecord record) {
    if (auto* snapshot = std::get_if<SnapshotRecord>(&record)) take(std::move(*snapshot));
    if (const auto* event = std::get_if<EventRecord>(&record)) take(*event);
    if (const auto* known = std::get_if<IncarnationRecord>(&record))
      if (const auto found = jobs_.find(known->job); found != jobs_.end())
        found->second.identity.incarnations[known->node] = known->incarnation;
  }

  std::vector<RecoveredJob> at(Instant now) && {
    std::vector<RecoveredJob> recovered;
    for (auto& [id, state] : jobs_) {
      auto history = JobHistory(state.history.kept().shifted_by(now - state.last));
      recovered.push_back(
          {std::move(state.identity), Job::restore(state.job.snapshot(state.last), now), std::move(history)});
    }
    return recovered;
  }

 private:
  struct State {
    JobIdentity identity;
    Job job;
    JobHistory history;
    Instant taken_at;
    std::int64_t taken_unix_ms;
    Instant last;
  };

  void take(SnapshotRecord record) {
    const auto at = record.snapshot.taken_at;
    const auto id = record.snapshot.id;
    jobs_.insert_or_assign(id, State{std::move(record.identity), Job::restore(record.snapshot, at),
                                     JobHistory(std::move(record.history)), at, record.taken_unix_ms, at});
  }

  void take(const EventRecord& record) {
    const auto found = jobs_.find(record.job);
    if (found == jobs_.end()) return;
    auto& state = found->second;
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(record.at - state.taken_at);
    const JobHistory::Time time{record.at, state.taken_unix_ms + since.count()};
    state.history.before(record.event, state.job, time);
    const auto effects = state.job.step(record.event, record.at);
    state.history.after(effects, time);
    state.last = std::max(state.last, record.at);
  }

  std::map<std::string, State> jobs_;
};

}  // namespace

Result<Journal::Opened> Journal::open(boost::asio::io_context& io, std::shared_ptr<spdlog::logger> log,
                                      const std::string& folder, Instant now, Duration retry) {
  std::unique_ptr<Journal> journal(new Journal(io, std::move(log), folder, retry));
  Opened opened;
  auto failure = journal->lock();
  if (!failure) {
    auto jobs = journal->recover(now);
    if (jobs)
      opened.jobs = std::move(*jobs);
    else
      failure = jobs.error();
  }
  if (!failure) {
    std::vector<SnapshotRecord> snapshots;
    for (const auto& job : opened.jobs)
      snapshots.push_back({job.identity, job.job.snapshot(now), unix_time_ms(), job.history.kept()});
    failure = journal->rewrite(snapshots);
  }
  if (failure && !is_fault_of_disk(*failure)) return *failure;
  if (failure) journal->fail(*failure, kLostAtStart);
  if (!failure) journal->watch();
  opened.journal = std::move(journal);
  return opened;
}

// A lock file that is there can be locked on a disk that takes nothing any more.
std::optional<Error> Journal::lock() {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return errno_error("state folder " + folder_, error.value());
  const auto path = lock_path();
  lock_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const int failure = errno;
  if (!lock_) lock_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock_) return errno_error(path, failure);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return std::nullopt;
  const auto taken = errno_error(path, errno, "another musterd uses this state folder");
  lock_.reset();
  return taken;
}

Journal::~Journal() {
  all_jobs_ = nullptr;
  flush();
}

Result<std::vector<RecoveredJob>> Journal::recover(Instant now) {
  const auto content = read_file(path());
  if (!content && content.error().error_number == ENOENT) return std::vector<RecoveredJob>{};
  if (!content) return content.error();
  if (content->size() < kJournalHeaderBytes && journal_header().starts_with(*content)) {
    log_->warn("{}: cut off in its first line: all that it knew is lost, agents tell what they have", path());
    return std::vector<RecoveredJob>{};
  }
  if (auto error = wrong_header(path(), *content)) return *error;
  Replay replay;
  std::size_t at = kJournalHeaderBytes;
  std::size_t records = 0;
  while (at < content->size()) {
    auto read = read_record(std::string_view(*content).substr(at));
    if (!read) {
      log_->warn("{}: {} bytes at its end are lost (from byte {}, after {} records): {}", path(),
                 content->size() - at, at, records, read.error().sentence());
      break;
    }
    at += read->bytes;
    ++records;
    replay.take(std::move(read->record));
  }
  return std::move(replay).at(now);
}

std::optional<Error> Journal::rewrite(const std::vector<SnapshotRecord>& jobs) {
  const auto fresh_path = path() + ".new";
  UniqueFd fresh(::open(fresh_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!fresh) return errno_error(fresh_path, errno);
  auto content = journal_header();
  for (const auto& job : jobs) content += encode(JournalRecord(job));
  auto error = write_all(fresh.get(), content, fresh_path);
  if (!error && ::fsync(fresh.get()) != 0) error = errno_error(fresh_path, errno);
  if (!error && ::rename(fresh_path.c_str(), path().c_str()) != 0) error = errno_error(fresh_path, errno);
  if (error) ::unlink(fresh_path.c_str());  // what little room there is, others need
  if (!error) error = sync_folder(folder_);
  if (error) return error;
  file_ = std::move(fresh);
  bytes_ = bytes_after_compaction_ = content.size();
  return std::nullopt;
}

void Journal::append_snapshot(SnapshotRecord snapshot) { append(std::move(snapshot)); }

void Journal::append_event(const std::string& job, const Event& event, Instant at) {
  append(EventRecord{job, at, event});
}

void Journal::append_incarnation(const std::string& job, const NodeId& node, const std::string& incarnation) {
  append(IncarnationRecord{job, node, incarnation});
}

void Journal::append(const JournalRecord& record) {
  if (!file_) return;
  unwritten_ += encode(record);
  schedule();
}

void Journal::when_written(std::function<void()> then) {
  waiting_.push_back(std::move(then));
  schedule();
}

void Journal::schedule() {
  if (std::exchange(scheduled_, true)) return;
  boost::asio::post(io_, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) flush();
  });
}

void Journal::flush() {
  scheduled_ = false;
  if (file_ && !unwritten_.empty()) {
    auto error = write_all(file_.get(), unwritten_, path());
    if (!error && ::fdatasync(file_.get()) != 0) error = errno_error(path(), errno);
    bytes_ += unwritten_.size();
    if (!error) error = removal();
    if (error) fail(*error, kLostLater);
  }
  unwritten_.clear();
  for (const auto& then : std::exchange(waiting_, {})) then();
  compact_if_large();
}

// Only when nothing waits to be written: the snapshots then hold all that was appended.
void Journal::compact_if_large() {
  if (!file_ || !all_jobs_ || !unwritten_.empty()) return;
  if (bytes_ < kCompactAboveBytes || bytes_ < kCompactAtMultiple * bytes_after_compaction_) return;
  if (const auto error = rewrite(all_jobs_())) fail(*error, kLostLater);
}

void Journal::fail(const Error& error, const char* consequence) {
  file_.reset();
  lost_ = error;
  lost_since_ = std::chrono::steady_clock::now();
  log_->error("{}; the daemon goes on without its journal, and {}; it is tried again every {}",
              error.sentence(), consequence, human(retry_));
  try_again_later();
}

std::optional<Error> Journal::removal() const {
  if (is_elsewhere(file_, path()) || is_elsewhere(lock_, lock_path()))
    return Error{path(), "it was removed or moved, or its folder, or another was put in its place"};
  struct stat status {};
  if (file_ && ::fstat(file_.get(), &status) == 0 && static_cast<std::size_t>(status.st_size) < bytes_)
    return Error{path(), "it was cut short by somebody"};
  return std::nullopt;
}

/// It may be long until something is to be written.
void Journal::watch() {
  retry_timer_.expires_after(retry_);
  retry_timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (error || alive.expired()) return;
    if (const auto removed = removal()) return fail(*removed, kLostLater);
    watch();
  });
}

void Journal::try_again_later() {
  retry_timer_.expires_after(retry_);
  retry_timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (!error && !alive.expired()) try_again();
  });
}

// Between two turns of the event loop the jobs are as all their events left them, so nothing is missing in what is
// written now.
void Journal::try_again() {
  if (!all_jobs_) return;
  if (is_elsewhere(lock_, lock_path())) lock_.reset();
  auto error = lock_ ? std::nullopt : lock();
  if (!error) error = rewrite(all_jobs_());
  if (error) {
    lost_ = error;
    return try_again_later();
  }
  lost_.reset();
  watch();
  log_->info("{}: the journal is written again, after {} without it", path(),
             human(std::chrono::steady_clock::now() - lost_since_));
}

}  // namespace muster::rendezvous
