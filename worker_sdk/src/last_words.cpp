#include "worker_sdk/src/last_words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How long the last words of other ranks are waited for. They come within a round trip of the store after
/// the connections close, from every rank that is still there.
constexpr milliseconds last_words_timeout{1000};
constexpr milliseconds last_words_recheck_timeout{50};
constexpr std::size_t max_silent_ranks = 32;  ///< after so many the rest is not looked for

}  // namespace

std::string LastWordsBoard::key(int rank) const { return fmt::format("{}/last-words/{}", prefix_, rank); }

std::vector<int> LastWordsBoard::named(const std::vector<int>& ranks) const {
  std::vector<int> result;
  for (int rank : ranks) result.push_back(names_(rank));
  return result;
}

void LastWordsBoard::leave(int rank, const LastWords& words) {
  store_.set(key(rank), encode_last_words(words));
}

void LastWordsBoard::collect(const std::vector<int>& asked, Failure& failure) {
  const auto deadline = steady_clock::now() + last_words_timeout;
  std::size_t silent = 0;
  for (int rank : asked) {
    if (silent == max_silent_ranks) break;
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    const auto text = store_.get(key(rank), std::max(left, last_words_recheck_timeout));
    const auto words = text ? decode_last_words(*text) : std::nullopt;
    if (words)
      failure.last_words[names_(rank)] = *words;
    else
      ++silent;
  }
}

}  // namespace muster::worker
