#include "worker_sdk/src/failure_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "worker_sdk/src/rank_names.hpp"

namespace muster::worker {
namespace {

std::vector<int> silent(const Failure& failure) {
  std::vector<int> ranks;
  for (int rank : failure.asked)
    if (!failure.last_words.contains(rank)) ranks.push_back(rank);
  return ranks;
}

/// The n of "all_reduce #n (...)".
std::string_view sequence_in(std::string_view operation) {
  const auto begin = operation.find(" #");
  if (begin == std::string_view::npos) return {};
  const auto end = operation.find_first_not_of("0123456789", begin + 2);
  return operation.substr(begin + 2, end == std::string_view::npos ? end : end - begin - 2);
}

/// In the place of this rank's call they make another one.
bool contradicts(const LastWords& words, const Failure& failure) {
  return words.operation != failure.own.operation &&
         sequence_in(words.operation) == sequence_in(failure.own.operation);
}

enum class Those : std::uint8_t { that_contradict, others, all };

void add_others(const Failure& failure, std::vector<std::string>& parts, Those those) {
  for (const auto& [rank, words] : failure.last_words) {
    const auto kind = contradicts(words, failure) ? Those::that_contradict : Those::others;
    if (those != Those::all && those != kind) continue;
    if (words.timed_out && !failure.own.timed_out)
      parts.push_back(fmt::format("rank {} timed out in {}", rank, words.operation));
    else if (words.operation != failure.own.operation)
      parts.push_back(fmt::format("rank {} is in {}", rank, words.operation));
  }
}

std::string timeout_sentence(const Failure& failure) {
  std::vector<std::string> parts;
  const auto absent = silent(failure);
  if (!absent.empty())
    parts.push_back(
        fmt::format("{} {} not arrived", ranks_text(absent), absent.size() == 1 ? "has" : "have"));
  add_others(failure, parts, Those::all);
  if (parts.empty()) parts.push_back(fmt::format("no data from or to rank {}", failure.waited_for));
  return fmt::format("{} timed out after {} s: {}", failure.own.operation,
                     std::chrono::duration<double>(failure.timeout).count(), fmt::join(parts, "; "));
}

/// A rank whose connection is closed and that left no word has died, or left without waiting for the others.
/// One that did leave a word closed its connections because of another.
std::vector<int> dead(const Failure& failure) {
  std::set<int> ranks(failure.own.lost.begin(), failure.own.lost.end());
  for (const auto& [rank, words] : failure.last_words) ranks.insert(words.lost.begin(), words.lost.end());
  for (const auto& [rank, words] : failure.last_words) ranks.erase(rank);
  ranks.erase(failure.rank);  // of which another has seen that it gave up
  return {ranks.begin(), ranks.end()};
}

std::string loss_sentence(const Failure& failure) {
  std::vector<std::string> parts;
  add_others(failure, parts, Those::that_contradict);
  const auto gone = dead(failure);
  if (!gone.empty()) parts.push_back("lost the connection to " + ranks_text(gone));
  add_others(failure, parts, Those::others);
  if (parts.empty() && !failure.last_words.empty())
    parts.push_back(fmt::format("rank {} gave up first", failure.last_words.begin()->first));
  if (parts.empty()) parts.push_back(fmt::format("lost the connection to rank {}", failure.waited_for));
  return fmt::format("{}: {}", failure.own.operation, fmt::join(parts, "; "));
}

}  // namespace

std::string encode_last_words(const LastWords& words) {
  const nlohmann::json json{
      {"operation", words.operation}, {"timed_out", words.timed_out}, {"lost", words.lost}};
  return json.dump();
}

std::optional<LastWords> decode_last_words(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  try {
    return LastWords{json.at("operation"), json.at("timed_out"), json.at("lost")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string sentence(const Failure& failure) {
  return failure.own.timed_out ? timeout_sentence(failure) : loss_sentence(failure);
}

}  // namespace muster::worker
