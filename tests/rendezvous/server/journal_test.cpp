#include "rendezvous/server/journal.hpp"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "rendezvous/protocol/policy_values.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::rendezvous {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using ::testing::HasSubstr;

JobPolicy two_nodes() {
  JobPolicy policy;
  policy.min_nodes = policy.max_nodes = 2;
  policy.max_restarts = 3;
  return policy;
}

Event join(const std::string& node) {
  NodeOffer offer;
  offer.node = node;
  offer.host = "host-" + node;
  offer.address = "10.0.0.1";
  offer.store_port = 29500;
  offer.incarnation = node + "-1";
  offer.local_workers = 2;
  return FromAgent{node, Join{offer}};
}

Event failed(const std::string& node, int round) {
  WorkerFailure failure;
  failure.node = node;
  failure.rank = 1;
  failure.round = round;
  failure.lived_ms = 60'000;
  failure.cause = ExitCause::signalled(9);
  return FromAgent{node, WorkerFailed{round, failure}};
}

class JournalTest : public testing::Test {
 protected:
  Journal::Opened open(Instant now = {}) {
    auto opened = Journal::open(io_, log_, folder_, now);
    EXPECT_TRUE(opened) << opened.error().sentence();
    return std::move(*opened);
  }

  /// A job that has lived: a round, a failure, a second round.
  void live(Journal& journal, Job& job) {
    JobHistory history;
    journal.append_snapshot({identity_, job.snapshot(Instant{}), 1'700'000'000'000, history.kept()});
    Instant at{};
    for (const auto& event : {join("a"), join("b"), failed("a", 1), Event{FromAgent{"a", WorkersStopped{1}}},
                              Event{FromAgent{"b", WorkersStopped{1}}}, join("a"), join("b")}) {
      at += seconds(1);
      job.step(event, at);
      journal.append_event(job.id(), event, at);
    }
    end_ = at;
    journal.append_incarnation(job.id(), "a", "a-1");
    journal.flush();
  }

  std::string file() const { return folder_ + "/journal"; }
  std::string content() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void overwrite(const std::string& bytes) {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes;
  }
  template <class Condition>
  bool run_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(10);
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      io_.run_one_for(std::chrono::milliseconds(5));
    return condition();
  }

  std::string log() const { return log_text_.str(); }

  test::TemporaryFolder scratch_;
  const std::string folder_ = scratch_.path();
  boost::asio::io_context io_;
  std::ostringstream log_text_;
  std::shared_ptr<spdlog::logger> log_ =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_text_));
  JobIdentity identity_{7, 1'700'000'000'000, policy_values(two_nodes()), {}};
  Instant end_{};
};

TEST_F(JournalTest, AJobComesBackAsItWas) {
  Job job("mnist", two_nodes());
  live(*open().journal, job);
  ASSERT_EQ(job.phase(), Phase::running);
  auto opened = open(end_);
  ASSERT_EQ(opened.jobs.size(), 1u);
  EXPECT_EQ(opened.jobs[0].job.snapshot(end_), job.snapshot(end_));
  EXPECT_EQ(opened.jobs[0].identity.incarnation, 7u);
  EXPECT_EQ(opened.jobs[0].identity.policy, identity_.policy);
  EXPECT_EQ(opened.jobs[0].identity.incarnations.at("a"), "a-1");
  EXPECT_EQ(log(), "");
}

TEST_F(JournalTest, ItComesBackOnAnotherClockWithoutTheTimeBetween) {
  Job job("mnist", two_nodes());
  live(*open().journal, job);
  const auto later = end_ + std::chrono::hours(24 * 365);
  auto opened = open(later);
  EXPECT_EQ(opened.jobs.at(0).job.snapshot(later), shifted_to(job.snapshot(end_), later));
}

TEST_F(JournalTest, TheNewestRoundsAndEventsComeBackWithTheirTimes) {
  Job job("mnist", two_nodes());
  live(*open().journal, job);
  for (int restart = 0; restart < 2; ++restart) {  // first from the events, then from the snapshot
    const auto opened = open(end_);
    const auto& history = opened.jobs.at(0).history;
    ASSERT_EQ(history.rounds().size(), 2u);
    EXPECT_EQ(history.rounds()[0].reason, "all 2 nodes are here");
    EXPECT_THAT(history.rounds()[0].end_reason, HasSubstr("restart 1 of 3 after rank 1 on a was killed"));
    EXPECT_EQ(history.rounds()[1].formed_at, end_);
    EXPECT_EQ(history.rounds()[0].unix_time_ms, 1'700'000'002'000);
    EXPECT_EQ(history.events().front().text, "node a (10.0.0.1) joins with 2 workers");
  }
}

TEST_F(JournalTest, OfALongHistoryTheNewestAreKept) {
  JobHistory history;
  for (int i = 1; i <= 200; ++i) history.note("event " + std::to_string(i), {});
  EXPECT_EQ(history.kept().events.size(), JobHistory::kKept);
  EXPECT_EQ(history.kept().events.back().text, "event 200");
}

// Field report: a daemon that was started again on a full disk gave up.
TEST_F(JournalTest, AFullDiskAtTheStartIsSaidOnceAndTheJobsAreThere) {
  Job job("mnist", two_nodes());
  live(*open().journal, job);
  fs::create_symlink("/dev/full", file() + ".new");
  auto opened = Journal::open(io_, log_, folder_, end_, std::chrono::milliseconds(20));
  ASSERT_TRUE(opened) << opened.error().sentence();
  EXPECT_EQ(opened->jobs.size(), 1u);
  ASSERT_TRUE(opened->journal->lost());
  const auto text = log();
  EXPECT_THAT(text, HasSubstr("ENOSPC"));
  EXPECT_THAT(text, HasSubstr("goes on without its journal, and agents tell it what they have"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  bool answered = false;
  opened->journal->when_written([&] { answered = true; });
  io_.poll();
  EXPECT_TRUE(answered) << "nobody waits for what is not written";
}

TEST_F(JournalTest, AJournalThatWasLostIsWrittenAgainOnceThereIsRoom) {
  fs::create_symlink("/dev/full", file() + ".new");  // a try that fails takes it away
  auto opened = Journal::open(io_, log_, folder_, end_, std::chrono::milliseconds(20));
  ASSERT_TRUE(opened && opened->journal->lost());
  Job job("mnist", two_nodes());
  opened->journal->on_compaction([&] { return std::vector{SnapshotRecord{identity_, job.snapshot(end_)}}; });
  EXPECT_TRUE(run_until([&] { return !opened->journal->lost(); }));
  EXPECT_THAT(log(), HasSubstr("the journal is written again"));
  opened->journal.reset();
  EXPECT_EQ(open(end_).jobs.size(), 1u);
}

// Field report: all went on as if it were there.
TEST_F(JournalTest, AJournalThatSomebodyRemovesIsToldAndWrittenAgain) {
  auto opened = Journal::open(io_, log_, folder_, Instant{}, std::chrono::milliseconds(20));
  ASSERT_TRUE(opened);
  Job job("mnist", two_nodes());
  opened->journal->on_compaction([&] {
    return std::vector{SnapshotRecord{identity_, job.snapshot(Instant{})}};
  });
  fs::remove_all(folder_);
  EXPECT_TRUE(run_until([&] {
    return log().find("it was removed or moved, or its folder") != std::string::npos;
  })) << log();
  EXPECT_TRUE(run_until([&] { return log().find("the journal is written again") != std::string::npos; }))
      << log();
  opened->journal.reset();
  EXPECT_EQ(open().jobs.size(), 1u);
}

TEST_F(JournalTest, AFolderInTheJournalsPlaceIsNamed) {
  fs::create_directories(file());
  const auto opened = Journal::open(io_, log_, folder_, end_);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().sentence(), HasSubstr(file() + ": Is a directory (EISDIR)"));
}

// What was cut off is lost, what was before it is not, wherever the cut falls.
TEST_F(JournalTest, ATornEndIsCutWithOneLine) {
  Job job("mnist", two_nodes());
  live(*open().journal, job);
  const auto whole = content();
  for (std::size_t size = 0; size < whole.size(); size += size < kJournalHeaderBytes ? 1 : 131) {
    overwrite(whole.substr(0, size));
    log_text_.str("");
    const auto opened = open(end_);
    EXPECT_LE(opened.jobs.size(), 1u);
    const auto text = log();
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 1) << text;
    if (!text.empty()) {
      EXPECT_TRUE(text.find("bytes at its end are lost") != std::string::npos ||
                  (size < kJournalHeaderBytes && text.find("all that it knew is lost") != std::string::npos))
          << text;
    }
  }
}

// Each byte in its turn has another value: the file is refused as none of ours, or cut there with one line.
TEST_F(JournalTest, AWrongByteAnywhereIsFound) {
  Job job("mnist", two_nodes());
  live(*open().journal, job);
  const auto whole = content();
  std::size_t most = 0;
  for (std::size_t at = 0; at < whole.size(); at += at < 64 ? 1 : 13) {
    auto bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    overwrite(bytes);
    log_text_.str("");
    const auto opened = Journal::open(io_, log_, folder_, end_);
    if (at < kJournalHeaderBytes) {
      EXPECT_FALSE(opened) << at;
      continue;
    }
    ASSERT_TRUE(opened) << at << ": " << opened.error().sentence();
    const auto text = log();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << at << ": " << text;
    most = std::max(most, opened->jobs.size());
  }
  EXPECT_EQ(most, 1u) << "what was before it is not lost";
}

TEST_F(JournalTest, ADamagedRecordCutsWhatFollows) {
  Job job("mnist", two_nodes());
  live(*open().journal, job);
  auto bytes = content();
  bytes[bytes.size() - 20] ^= 1;
  overwrite(bytes);
  const auto opened = open(end_);
  EXPECT_EQ(opened.jobs.size(), 1u);
  EXPECT_NE(log().find("damaged"), std::string::npos) << log();
}

TEST_F(JournalTest, AnotherVersionOrAnotherFileIsRefusedAndNotTouched) {
  for (const auto& bytes :
       {std::string("MSTJ\x09\0\0\0 of the future", 22), std::string("holiday photographs")}) {
    overwrite(bytes);
    const auto opened = Journal::open(io_, log_, folder_, Instant{});
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().sentence().find(file()), std::string::npos);
    EXPECT_EQ(content(), bytes);
  }
}

TEST_F(JournalTest, TwoDaemonsDoNotShareAFolder) {
  const auto first = open();
  const auto second = Journal::open(io_, log_, folder_, Instant{});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().sentence().find("another musterd"), std::string::npos)
      << second.error().sentence();
}

TEST_F(JournalTest, AFolderThatCannotBeMadeIsNamed) {
  const auto opened = Journal::open(io_, log_, "/proc/no/such/folder", Instant{});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().sentence().find("/proc/no/such/folder"), std::string::npos);
}

TEST_F(JournalTest, WhatWaitsIsCalledAfterTheWriteAndInOrder) {
  auto opened = open();
  std::string order;
  const auto before = fs::file_size(file());
  opened.journal->append_event("mnist", Tick{}, Instant{});
  opened.journal->when_written([&] { order += fs::file_size(file()) > before ? "a" : "too early"; });
  opened.journal->when_written([&] { order += "b"; });
  EXPECT_EQ(order, "");
  EXPECT_TRUE(run_until([&] { return order.size() == 2; }));
  EXPECT_EQ(order, "ab");
}

TEST_F(JournalTest, ItDoesNotGrowWithoutEnd) {
  auto opened = open();
  Job job("mnist", two_nodes());
  opened.journal->append_snapshot({identity_, job.snapshot(Instant{})});
  opened.journal->on_compaction([&] {
    return std::vector{SnapshotRecord{identity_, job.snapshot(Instant{})}};
  });
  const auto leave = Event{FromAgent{"x", Leave{std::string(60'000, 'r')}}};
  for (int i = 0; i < 100; ++i) {
    opened.journal->append_event("mnist", leave, Instant{});
    opened.journal->flush();
  }
  EXPECT_LT(fs::file_size(file()), Journal::kCompactAboveBytes);
  opened.journal.reset();
  EXPECT_EQ(open().jobs.size(), 1u);
}

TEST_F(JournalTest, EveryKindOfEventComesBack) {
  const std::vector<Event> events{join("a"),
                                  ConnectionLost{"a", LossKind::broken, "why"},
                                  Tick{},
                                  Restarted{},
                                  CloseRoster{},
                                  DrainNode{"a"},
                                  Scale{1, 2},
                                  ClearCooldown{"a"},
                                  StopJob{"enough"},
                                  Rehearse{3, "a", 9}};
  ASSERT_EQ(events.size(), std::variant_size_v<Event>);
  for (const auto& event : events) {
    const auto bytes = encode(JournalRecord(EventRecord{"mnist", Instant(seconds(5)), event}));
    const auto read = read_record(bytes);
    ASSERT_TRUE(read) << read.error().sentence();
    EXPECT_EQ(read->bytes, bytes.size());
    const auto& record = std::get<EventRecord>(read->record);
    EXPECT_EQ(record.at, Instant(seconds(5)));
    EXPECT_EQ(record.event.index(), event.index());
    EXPECT_EQ(encode(read->record), bytes);
  }
}

}  // namespace
}  // namespace muster::rendezvous
