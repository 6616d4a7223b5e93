// Why an operation failed, put together from what this rank saw and what the others left in the store: pure.
//
//   last words = { "operation": text, "timed_out": boolean, "lost": [rank, ...] }
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::worker {

/// What a rank leaves in the store when its group breaks.
struct LastWords {
  std::string operation;  ///< the one that failed there
  bool timed_out = false;
  std::vector<int> lost;  ///< whose connections it saw closed
};

std::string encode_last_words(const LastWords& words);
/// Nothing for a text that is none.
std::optional<LastWords> decode_last_words(const std::string& text);

struct Failure {
  int rank = -1;  ///< this one
  LastWords own;
  std::chrono::milliseconds timeout{0};
  int waited_for = 0;                   ///< the rank whose message did not come or go
  std::vector<int> asked;               ///< the ranks whose last words were looked for
  std::map<int, LastWords> last_words;  ///< those that were found
};

/// "all_reduce #42 (sum, 1000 x F32) timed out after 10 s: rank 2 has not arrived; rank 3 is in barrier #41".
/// "all_reduce #42 (sum, 1000 x F32): lost the connection to rank 2".
/// "all_reduce #42 (sum, 1000 x F32): rank 1 is in barrier #42; lost the connection to rank 2": another call in the
/// same place is the cause, and who has gone may only have been done.
std::string sentence(const Failure& failure);

}  // namespace muster::worker
