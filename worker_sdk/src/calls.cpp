#include "worker_sdk/src/calls.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

namespace muster::worker {
namespace {

using Record = std::span<const std::uint8_t>;

std::string text_of(Record record) {
  const auto* begin = reinterpret_cast<const char*>(record.data()) + sizeof(Operation::tag);
  return {begin, ::strnlen(begin, record.size() - sizeof(Operation::tag))};
}

/// The same text with another tag: what the text does not show, the counts of many ranks, differs.
std::string text_of(Record record, bool ambiguous) {
  return text_of(record) + (ambiguous ? " with counts of its own" : "");
}

}  // namespace

CallRecord encode_call(const Operation& operation) {
  CallRecord record{};
  for (std::size_t i = 0; i < sizeof(operation.tag); ++i)
    record[i] = static_cast<std::uint8_t>(operation.tag >> (8 * i));
  const auto length = std::min(operation.text.size(), record.size() - sizeof(operation.tag));
  std::memcpy(record.data() + sizeof(operation.tag), operation.text.data(), length);
  return record;
}

std::optional<std::string> disagreement(std::span<const std::uint8_t> records, const RankNames& names) {
  std::vector<Record> calls;  // different ones, in the order of the first rank that makes them
  std::vector<std::vector<int>> callers;
  for (std::size_t r = 0; r * record_bytes < records.size(); ++r) {
    const auto record = records.subspan(r * record_bytes, record_bytes);
    const auto same = [&](Record other) { return std::equal(other.begin(), other.end(), record.begin()); };
    const auto place =
        static_cast<std::size_t>(std::find_if(calls.begin(), calls.end(), same) - calls.begin());
    if (place == calls.size()) {
      calls.push_back(record);
      callers.emplace_back();
    }
    callers[place].push_back(names(static_cast<int>(r)));
  }
  if (calls.size() == 1) return std::nullopt;
  std::map<std::string, int> seen;
  for (const auto& call : calls) ++seen[text_of(call)];
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const bool one = callers[i].size() == 1;
    parts.push_back(fmt::format("rank{} {} call{} {}", one ? "" : "s", fmt::join(callers[i], ", "),
                                one ? "s" : "", text_of(calls[i], seen[text_of(calls[i])] > 1)));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string encode_latest(const LatestCall& call) { return fmt::format("{} {}", call.sequence, call.text); }

std::optional<LatestCall> decode_latest(const std::string& text) {
  LatestCall call;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, call.sequence);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != ' ') return std::nullopt;
  call.text.assign(parsed.ptr + 1, end);
  return call;
}

std::string absent_text(const std::vector<std::optional<LatestCall>>& latest, std::uint64_t sequence,
                        const RankNames& names) {
  std::vector<std::string> parts;
  for (std::size_t r = 0; r < latest.size(); ++r) {
    const auto& call = latest[r];
    if (call && call->sequence >= sequence) continue;
    parts.push_back(fmt::format("rank {} has not called it, {}", names(static_cast<int>(r)),
                                call ? "its last was " + call->text : "nor any other"));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace muster::worker
