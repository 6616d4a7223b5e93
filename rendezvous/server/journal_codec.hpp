// What the journal's records hold, to bytes and back. The grammar stands at the top of journal_codec.cpp.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "rendezvous/core/event.hpp"
#include "rendezvous/core/snapshot.hpp"
#include "rendezvous/protocol/channel_messages.hpp"
#include "rendezvous/server/job_history.hpp"

namespace muster::rendezvous {

inline constexpr std::uint32_t kJournalVersion = 6;
inline constexpr std::size_t kJournalHeaderBytes = 8;
inline constexpr std::size_t kRecordHeaderBytes = 13;
/// A snapshot of the largest job that is allowed fits.
inline constexpr std::uint32_t kMaxRecordBytes = 256 * 1024 * 1024;

/// What the daemon knows of a job and its core does not.
struct JobIdentity {
  std::uint64_t incarnation = 0;
  std::int64_t created_unix_ms = 0;
  std::vector<PolicyValue> policy;  ///< as the first agent brought it; all others are held against it
  std::map<NodeId, std::string> incarnations;  ///< the last one of each node
  bool operator==(const JobIdentity&) const = default;
};

struct SnapshotRecord {
  JobIdentity identity;
  JobSnapshot snapshot;
  std::int64_t taken_unix_ms = 0;  ///< when snapshot.taken_at was
  JobHistory::State history = {};
  bool operator==(const SnapshotRecord&) const = default;
};

struct EventRecord {
  std::string job;
  Instant at{};
  Event event;
};

struct IncarnationRecord {
  std::string job;
  NodeId node;
  std::string incarnation;
  bool operator==(const IncarnationRecord&) const = default;
};

using JournalRecord = std::variant<SnapshotRecord, EventRecord, IncarnationRecord>;

std::string journal_header();
std::string encode(const JournalRecord& record);

struct ReadRecord {
  JournalRecord record;
  std::size_t bytes = 0;  ///< that it takes in the file
};

/// The record at the front, or what is wrong with it: too short, damaged, unreadable.
Result<ReadRecord> read_record(std::string_view bytes);

/// Nothing when the header is this version's.
std::optional<Error> wrong_header(const std::string& path, std::string_view bytes);

}  // namespace muster::rendezvous
