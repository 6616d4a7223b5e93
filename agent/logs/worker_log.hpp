// One worker's output: its stdout and stderr come through pipes into files, onto the console and, for
// stderr, into a short memory of the last lines for the failure report.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/logs/line_prefix.hpp"
#include "base/error.hpp"
#include "base/time.hpp"

namespace muster::agent {

class Console;
class CollapsedConsole;
class MatchedLines;

/// Where one of the two streams goes.
struct StreamRoute {
  std::filesystem::path file;  ///< its folders are made if missing; empty: no file
  bool to_console = true;
  LinePrefix prefix;                                   ///< before each line on the console
  std::vector<std::shared_ptr<MatchedLines>> matched;  ///< files that get some of its lines, too
};

struct WorkerLogOptions {
  StreamRoute out;
  StreamRoute
      err;  ///< may name the same file as `out`: that one then gets whole lines in the order they came
  int local_rank = 0;
  bool terminal = false;      ///< the worker writes to terminals of its own instead of pipes
  bool whole_lines = true;    ///< false, for a worker that has the console to itself: bytes go there as they
                              ///< come, so that prompts and progress bars show; there is no prefix then
  LinePrefix matched_prefix;  ///< before the lines of `matched`
  std::size_t keep_lines = 30;                 ///< of stderr, for the report
  std::size_t max_line_bytes = 64 * 1024;      ///< a longer line reaches the console in several lines
  std::shared_ptr<Console> console = nullptr;  ///< null: the one of this process (Console::of)
  std::shared_ptr<CollapsedConsole> collapsed = nullptr;  ///< gets the lines instead of the console
};

/// Used from one thread, the executor's. Order of calls: open, (start the worker with the child's ends),
/// started, (the worker ends), finish. May be destroyed at any time; what is still in the pipes is then lost.
///
/// The files get the bytes exactly as they were written; an existing file is appended to. A full disk does
/// not stop anything (see log_file.hpp). A console that does not keep up can hold the worker for a second at
/// most (see console.hpp).
class WorkerLog {
 public:
  WorkerLog(boost::asio::any_io_executor executor, WorkerLogOptions options);
  ~WorkerLog();
  WorkerLog(WorkerLog&&) noexcept;
  WorkerLog& operator=(WorkerLog&&) noexcept;

  /// Makes pipes and files. All descriptors are close-on-exec. An error only if the worker could not write.
  Result<void> open();

  /// The ends that become the worker's descriptors 1 and 2; they stay ours until started().
  int child_stdout_fd() const;
  int child_stderr_fd() const;

  /// The worker has its ends (or will never have them): closes them here and begins to read.
  void started();

  /// The worker ended. `done` is called once, later, from the executor: after both pipes ended, or after
  /// `limit` when somebody else (a grandchild) still holds one open. All that the worker itself wrote is
  /// taken in either case.
  void finish(Duration limit, std::function<void()> done);

  /// Oldest first, without line ends; at most keep_lines.
  std::vector<std::string> last_stderr_lines() const;
  /// Empty without a file.
  const std::filesystem::path& stdout_path() const;
  const std::filesystem::path& stderr_path() const;
  /// Bytes that did not reach the files.
  std::uint64_t dropped_bytes() const;
  /// When it wrote last, or when it was started.
  Instant last_output() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
