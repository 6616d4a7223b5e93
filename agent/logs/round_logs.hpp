// What the workers of one round on this node share: the files of matching lines, and the collapsed console.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <memory>

#include "agent/logs/output_options.hpp"
#include "agent/logs/worker_log.hpp"

namespace muster::agent {

class RoundLogs {
 public:
  struct Round {
    WorkerName name;               ///< of the node and the round; ranks do not count here
    std::filesystem::path folder;  ///< of this job on this node; empty: no files
    int first_rank = 0;
    int local_workers = 1;
    int world_size = 1;
  };

  /// `options` must outlive this, and this the workers' logs.
  RoundLogs(const boost::asio::any_io_executor& executor, const OutputOptions& options, Round round);
  RoundLogs(const RoundLogs&) = delete;
  RoundLogs& operator=(const RoundLogs&) = delete;

  /// Opens the files; says it when the console will show nothing of the whole round.
  Result<void> open();
  WorkerLogOptions of(int local_rank) const;

 private:
  StreamRoute route_of(int local_rank, Streams stream) const;
  WorkerName name_of(int local_rank) const;
  LinePrefix prefix_of(Streams stream, const std::set<int>& local_ranks) const;
  std::set<int> shown(Streams stream) const;
  std::filesystem::path round_folder() const;
  std::unique_ptr<MatchedLines> new_file(const char* name, LineMatcher matcher) const;
  std::shared_ptr<CollapsedConsole> new_collapsed_console() const;

  boost::asio::any_io_executor executor_;
  const OutputOptions& options_;
  Round round_;
  std::shared_ptr<Console> console_;
  std::shared_ptr<CollapsedConsole> collapsed_;
  std::vector<std::shared_ptr<MatchedLines>> matched_out_;
  std::vector<std::shared_ptr<MatchedLines>> matched_err_;
};

}  // namespace muster::agent
