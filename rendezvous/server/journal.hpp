// The daemon's memory on disk: one file, `journal`, in a folder of its own. Appended to before the answer to
// what was appended leaves; everything that happens in one turn of the event loop is written and synced
// together. When it has grown to a multiple of what its jobs need, it is written anew, beside the old one,
// and takes its place in one step.
//
// A disk that fails, at the start or later, does not take the jobs down: it is said once, and the daemon goes on
// without its journal until it can be written again, which is tried from time to time and said once too.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "rendezvous/core/job.hpp"
#include "rendezvous/server/journal_codec.hpp"

namespace muster::rendezvous {

struct RecoveredJob {
  JobIdentity identity;
  Job job;
  JobHistory history;
};

class Journal {
 public:
  static constexpr std::size_t kCompactAboveBytes = 4 * 1024 * 1024;
  static constexpr std::size_t kCompactAtMultiple = 4;  ///< of its size after the last time
  static constexpr Duration kRetry = std::chrono::seconds(10);

  struct Opened {
    std::unique_ptr<Journal> journal;
    std::vector<RecoveredJob> jobs;  ///< stepped to the last event, moved to `now`
  };
  /// Makes the folder if need be and locks it: two daemons do not share one. A torn end is cut, and logged
  /// with what was lost; another version is an error, and nothing is touched. A full disk (or one that fails) is
  /// none: the journal is lost then, and written every `retry` again until that works.
  static Result<Opened> open(boost::asio::io_context& io, std::shared_ptr<spdlog::logger> log,
                             const std::string& folder, Instant now, Duration retry = kRetry);
  ~Journal();

  void append_snapshot(SnapshotRecord snapshot);
  void append_event(const std::string& job, const Event& event, Instant at);
  void append_incarnation(const std::string& job, const NodeId& node, const std::string& incarnation);

  /// Called once all that was appended so far is on disk, in this order, from the event loop.
  void when_written(std::function<void()> then);
  /// Writes and calls now.
  void flush();

  /// `all` gives every job that is to be kept; it is called when the journal is written anew.
  void on_compaction(std::function<std::vector<SnapshotRecord>()> all) { all_jobs_ = std::move(all); }

  std::size_t bytes() const { return lost_ ? 0 : bytes_; }
  /// Why nothing is written now; nothing: all is.
  const std::optional<Error>& lost() const { return lost_; }

 private:
  Journal(boost::asio::io_context& io, std::shared_ptr<spdlog::logger> log, std::string folder,
          Duration retry)
      : io_(io), log_(std::move(log)), folder_(std::move(folder)), retry_(retry), retry_timer_(io) {}

  std::string path() const { return folder_ + "/journal"; }
  std::string lock_path() const { return folder_ + "/lock"; }
  std::optional<Error> lock();
  Result<std::vector<RecoveredJob>> recover(Instant now);
  std::optional<Error> rewrite(const std::vector<SnapshotRecord>& jobs);
  void append(const JournalRecord& record);
  void schedule();
  void compact_if_large();
  void fail(const Error& error, const char* consequence);
  std::optional<Error> removal() const;
  void watch();
  void try_again_later();
  void try_again();

  boost::asio::io_context& io_;
  std::shared_ptr<spdlog::logger> log_;
  std::string folder_;
  UniqueFd lock_;
  UniqueFd file_;  ///< none while it is lost
  std::optional<Error> lost_;
  Instant lost_since_{};
  Duration retry_;
  boost::asio::steady_timer retry_timer_;
  std::string unwritten_;
  std::vector<std::function<void()>> waiting_;
  std::function<std::vector<SnapshotRecord>()> all_jobs_;
  std::size_t bytes_ = 0;
  std::size_t bytes_after_compaction_ = 0;
  bool scheduled_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace muster::rendezvous
