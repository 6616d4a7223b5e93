// What a worker and its node's agent say to each other over a Unix stream socket: lines of ASCII text, so that a
// worker in any language can join in.
//
//   worker -> agent   "hello 1 " ROUND " " LOCAL_RANK LF   first: version 1 of this page, MUSTER_ROUND, LOCAL_RANK
//                     "progress " STEP LF                  the worker has done this step
//                     "safe " STEP LF                      all that it did up to this step is saved; asked or not
//                     "done" LF                            its work is finished: exit code 0 will mean success
//   agent -> worker   "save " MILLISECONDS LF              save within this time, say "safe", and leave
//
// ROUND, LOCAL_RANK, STEP and MILLISECONDS are decimal numbers without a sign. A line has at most kMaxWorkerLine
// bytes, LF included. A line that begins with another word is for a newer peer and is passed over; a known word with
// wrong numbers, or a line that is too long, breaks the connection.
//
// Example: "hello 1 2 0\n" "progress 811\n" "progress 812\n", then "save 30000\n", then "safe 812\n"; where nobody
// asks, "done\n" is the last.
//
// Where: the socket's name is in MUSTER_CHANNEL. "@name" is in Linux's abstract namespace (a zero byte in place of
// the "@"), which leaves no file behind whatever happens.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"

namespace muster {

inline constexpr const char* kWorkerChannelVariable = "MUSTER_CHANNEL";
inline constexpr std::size_t kMaxWorkerLine = 64;
inline constexpr int kWorkerLinesVersion = 1;

struct HelloLine {
  int version = kWorkerLinesVersion;
  int round = 0;
  int local_rank = 0;
  bool operator==(const HelloLine&) const = default;
};
struct ProgressLine {
  std::int64_t step = 0;
  bool operator==(const ProgressLine&) const = default;
};
struct SafeLine {
  std::int64_t step = 0;
  bool operator==(const SafeLine&) const = default;
};
struct DoneLine {
  bool operator==(const DoneLine&) const = default;
};
struct SaveLine {
  std::chrono::milliseconds within{};
  bool operator==(const SaveLine&) const = default;
};
using WorkerLine = std::variant<HelloLine, ProgressLine, SafeLine, DoneLine, SaveLine>;

std::string worker_line(const WorkerLine& line);

/// Cuts bytes, as they come, into lines.
class WorkerLineReader {
 public:
  /// The lines that `bytes` completes. After an error nothing more may be put in.
  Result<std::vector<WorkerLine>> put(std::string_view bytes);

 private:
  std::string rest_;  ///< the beginning of a line; shorter than kMaxWorkerLine
};

}  // namespace muster
