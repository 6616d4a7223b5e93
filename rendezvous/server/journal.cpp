#include "rendezvous/server/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
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
  std::ifstream file(path, std::ios::binary);
  if (!file) return errno_error(path, errno);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return errno_error(path, errno);
  return Result<std::string>(boost::system::in_place_value, std::move(content));
}

// The jobs as the records tell: the newest snapshot of each, and all later events stepped at their times.
class Replay {
 public:
  void take(JournalRecord record) {
    if (auto* snapshot = std::get_if<SnapshotRecord>(&record)) {
      const auto at = snapshot->snapshot.taken_at;
      const auto id = snapshot->snapshot.id;
      jobs_.insert_or_assign(id,
                             State{std::move(snapshot->identity), Job::restore(snapshot->snapshot, at), at});
    }
    if (const auto* event = std::get_if<EventRecord>(&record))
      if (const auto found = jobs_.find(event->job); found != jobs_.end()) {
        found->second.job.step(event->event, event->at);
        found->second.last = std::max(found->second.last, event->at);
      }
    if (const auto* known = std::get_if<IncarnationRecord>(&record))
      if (const auto found = jobs_.find(known->job); found != jobs_.end())
        found->second.identity.incarnations[known->node] = known->incarnation;
  }

  std::vector<RecoveredJob> at(Instant now) && {
    std::vector<RecoveredJob> recovered;
    for (auto& [id, state] : jobs_)
      recovered.push_back({std::move(state.identity), Job::restore(state.job.snapshot(state.last), now)});
    return recovered;
  }

 private:
  struct State {
    JobIdentity identity;
    Job job;
    Instant last;
  };
  std::map<std::string, State> jobs_;
};

}  // namespace

Result<Journal::Opened> Journal::open(boost::asio::io_context& io, std::shared_ptr<spdlog::logger> log,
                                      const std::string& folder, Instant now) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return errno_error("state folder " + folder, error.value());
  std::unique_ptr<Journal> journal(new Journal(io, std::move(log), folder));
  const auto lock_path = folder + "/lock";
  journal->lock_ = UniqueFd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!journal->lock_) return errno_error(lock_path, errno);
  if (::flock(journal->lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return errno_error(lock_path, errno, "another musterd uses this state folder");
  auto jobs = journal->recover(now);
  if (!jobs) return jobs.error();
  std::vector<SnapshotRecord> snapshots;
  for (const auto& job : *jobs) snapshots.push_back({job.identity, job.job.snapshot(now)});
  if (auto failure = journal->rewrite(snapshots)) return *failure;
  return Opened{std::move(journal), std::move(*jobs)};
}

Journal::~Journal() {
  all_jobs_ = nullptr;
  flush();
}

Result<std::vector<RecoveredJob>> Journal::recover(Instant now) {
  if (!std::filesystem::exists(path())) return std::vector<RecoveredJob>{};
  const auto content = read_file(path());
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
  if (auto error = write_all(fresh.get(), content, fresh_path)) return error;
  if (::fsync(fresh.get()) != 0) return errno_error(fresh_path, errno);
  if (::rename(fresh_path.c_str(), path().c_str()) != 0) return errno_error(fresh_path, errno);
  if (auto error = sync_folder(folder_)) return error;
  file_ = std::move(fresh);
  bytes_ = bytes_after_compaction_ = content.size();
  return std::nullopt;
}

void Journal::append_snapshot(const JobIdentity& identity, const JobSnapshot& snapshot) {
  append(SnapshotRecord{identity, snapshot});
}

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
    if (error) fail(*error);
  }
  unwritten_.clear();
  for (const auto& then : std::exchange(waiting_, {})) then();
  compact_if_large();
}

// Only when nothing waits to be written: the snapshots then hold all that was appended.
void Journal::compact_if_large() {
  if (!file_ || !all_jobs_ || !unwritten_.empty()) return;
  if (bytes_ < kCompactAboveBytes || bytes_ < kCompactAtMultiple * bytes_after_compaction_) return;
  if (const auto error = rewrite(all_jobs_())) fail(*error);
}

void Journal::fail(const Error& error) {
  file_.reset();
  log_->error(
      "{}; the daemon goes on without its journal, and a restart of it will not know what happens from now "
      "on",
      error.sentence());
}

}  // namespace muster::rendezvous
