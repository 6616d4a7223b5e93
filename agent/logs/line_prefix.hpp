// What stands before each line of a worker on the console. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

/// What a worker is called, for prefixes and paths.
struct WorkerName {
  std::string job;
  std::string node;
  std::string host;
  std::string role;
  std::string rank;        ///< "3"; of a line of several workers "0-3,7"
  std::string local_rank;  ///< the same
  int round = 0;
  int attempt = 0;  ///< restarts after failures so far

  /// The text of a field: job, node, host, role, rank, local_rank, round, attempt, and torchrun's role_name
  /// and hostname.
  std::optional<std::string> text_of(std::string_view field) const;
};

/// torchrun's, for what --tee names.
inline constexpr std::string_view kTorchrunPrefix = "[${role_name}${local_rank}]:";

/// A template with a worker's names filled in; only the time differs from line to line.
class LinePrefix {
 public:
  LinePrefix() = default;
  /// Fields are WorkerName's and `time`, as `${rank}`, `$rank` or `{rank}`.
  LinePrefix(std::string_view text, const WorkerName& worker);

  bool empty() const { return pieces_.size() == 1 && pieces_[0].empty(); }
  bool has_time() const { return pieces_.size() > 1; }
  /// `clock`: "14:03:11.482"; only looked at where has_time().
  void append_to(std::string& block, std::string_view clock) const;
  bool operator==(const LinePrefix&) const = default;

 private:
  std::vector<std::string> pieces_ = {""};  // the time stands between them
};

}  // namespace muster::agent
