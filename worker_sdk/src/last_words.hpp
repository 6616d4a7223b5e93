// What ranks tell each other by the store when a group breaks, so that each can say whose failure it was.
#pragma once

#include <string>
#include <vector>

#include "worker_sdk/src/failure_report.hpp"
#include "worker_sdk/src/key_value_store.hpp"
#include "worker_sdk/src/rank_names.hpp"

namespace muster::worker {

class LastWordsBoard {
 public:
  /// Keys go under `prefix`.
  LastWordsBoard(KeyValueStore& store, std::string prefix, const RankNames& names)
      : store_(store), prefix_(std::move(prefix)), names_(names) {}

  /// `rank` is the one in the group, as are those below. Throws CollectiveError if the store cannot be reached.
  void leave(int rank, const LastWords& words);
  /// Fills `failure.last_words` with those of `asked`. Takes up to a second. Throws as leave().
  void collect(const std::vector<int>& asked, Failure& failure);
  /// By their names.
  std::vector<int> named(const std::vector<int>& ranks) const;

 private:
  std::string key(int rank) const;

  KeyValueStore& store_;
  std::string prefix_;
  const RankNames& names_;
};

}  // namespace muster::worker
