// Feeds arbitrary bytes to the journal's reader: as they are, the way a damaged file would, and as the body of a
// record whose checksum is right. What is accepted must encode to the bytes it came from, and an event that is
// accepted must leave a job that can be written down and taken up again.
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rendezvous/core/job.hpp"
#include "rendezvous/protocol/wire.hpp"
#include "rendezvous/server/journal_codec.hpp"

namespace {

using namespace muster;
using namespace muster::rendezvous;

void require(bool holds) {
  if (!holds) std::abort();
}

std::string with_checksum(std::string_view body) {
  WireWriter out;
  out.u32(static_cast<std::uint32_t>(body.size() - 1));
  out.u64(XXH3_64bits(body.data(), body.size()));
  out.raw(body);
  return std::move(out.bytes());
}

Job job_of_two() {
  JobPolicy policy;
  policy.min_nodes = 1;
  policy.max_nodes = 2;
  Job job("job", policy);
  for (const char* node : {"a", "b"}) {
    NodeOffer offer;
    offer.node = offer.host = offer.incarnation = node;
    offer.address = "10.0.0.1";
    offer.store_port = 29500;
    offer.local_workers = 2;
    job.step(FromAgent{node, Join{offer}}, Instant{});
  }
  return job;
}

// What the daemon does not let through to a job is in no journal.
bool may_happen(const Job& job, const Event& event, Instant now) {
  const auto* said = std::get_if<FromAgent>(&event);
  if (said == nullptr) return true;
  const NodeOffer* offer = nullptr;
  if (const auto* join = std::get_if<Join>(&said->message)) offer = &join->offer;
  if (const auto* resume = std::get_if<Resume>(&said->message)) offer = &resume->offer;
  return offer == nullptr || (offer->node == said->node && !job.refusal(*offer, now));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto error = wrong_header("journal", input); !error) require(size >= kJournalHeaderBytes);
  if (const auto read = read_record(input)) require(read->bytes <= size);

  // Records of up to 64 KB, each led by its length.
  Job job = job_of_two();
  Instant now{};
  for (std::string_view rest = input; rest.size() > 3;) {
    const std::size_t length =
        1 + (static_cast<unsigned char>(rest[0]) << 8 | static_cast<unsigned char>(rest[1]));
    const std::string record = with_checksum(rest.substr(2, length));
    rest.remove_prefix(std::min(rest.size(), 2 + length));
    const auto read = read_record(record);
    if (!read) continue;
    require(read->bytes == record.size());
    require(encode(read->record) == record);
    const auto* event = std::get_if<EventRecord>(&read->record);
    if (event == nullptr || job.over()) continue;
    now += std::chrono::nanoseconds(event->at.time_since_epoch().count() & 0xF'FFFF'FFFF);
    if (!may_happen(job, event->event, now)) continue;
    job.step(event->event, now);
    const auto snapshot = job.snapshot(now);
    require(Job::restore(snapshot, now).snapshot(now) == snapshot);
  }
  return 0;
}
