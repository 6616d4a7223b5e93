#include "agent/logs/console.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <string>
#include <thread>

#include "base/unique_fd.hpp"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct ConsoleTest : ::testing::Test {
  ConsoleTest() {
    ::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader.reset(ends[0]);
    writer.reset(ends[1]);
    EXPECT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
  }

  std::string read_all() const {
    std::string text;
    std::array<char, 65536> buffer;
    for (ssize_t size; (size = ::read(reader.get(), buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(size));
    return text;
  }

  // Runs the loop and reads until nothing more comes.
  std::string read_until_quiet() {
    std::string text;
    for (std::string more = " "; !more.empty();) {
      io.poll();
      io.restart();
      more = read_all();
      text += more;
    }
    return text;
  }

  boost::asio::io_context io{1};
  UniqueFd reader;
  UniqueFd writer;
  const Console::Limits limits{64 * 1024, 50ms};
};

std::string lines_of(std::size_t bytes) {
  std::string text;
  for (int number = 0; text.size() < bytes; ++number) text += "line " + std::to_string(number) + "\n";
  return text;
}

TEST_F(ConsoleTest, WritesALineAtOnce) {
  Console console(io.get_executor(), writer.get(), writer.get(), limits);
  console.write(Console::Stream::out, "hello\n");
  EXPECT_EQ(read_all(), "hello\n");
}

TEST_F(ConsoleTest, LeavesTheFlagsOfTheSharedDescriptionAlone) {
  const int before = ::fcntl(writer.get(), F_GETFL);
  Console console(io.get_executor(), writer.get(), writer.get(), limits);
  console.write(Console::Stream::out, lines_of(200'000));
  io.poll();
  EXPECT_EQ(::fcntl(writer.get(), F_GETFL), before);
}

TEST_F(ConsoleTest, ASlowReaderGetsEverything) {
  Console console(io.get_executor(), writer.get(), writer.get(), limits);
  const std::string sent = lines_of(100'000);  // more than the pipe takes, less than the queue and the pipe
  for (std::size_t at = 0; at < sent.size();) {
    const std::size_t end = sent.find('\n', at) + 1;
    console.write(Console::Stream::out, std::string_view(sent).substr(at, end - at));
    at = end;
  }
  EXPECT_EQ(read_until_quiet(), sent);
  EXPECT_EQ(console.dropped_lines(), 0u);
}

TEST_F(ConsoleTest, AReaderThatNeverReadsCostsTheLongestHoldOnceAndThenLines) {
  Console console(io.get_executor(), writer.get(), writer.get(), limits);
  const std::string block = lines_of(16 * 1024);
  while (!console.full(Console::Stream::out)) console.write(Console::Stream::out, block);
  bool resumed = false;
  console.when_room(Console::Stream::out, [&] { resumed = true; });
  const auto begin = std::chrono::steady_clock::now();
  while (!resumed) ASSERT_GT(io.run_one_for(5s), 0u);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
  EXPECT_FALSE(console.full(Console::Stream::out)) << "readers go on";
  console.write(Console::Stream::out, "lost\nlost too\n");
  EXPECT_EQ(console.dropped_lines(), 2u);

  const std::string text = read_until_quiet();
  EXPECT_THAT(text, StartsWith("line 0\n"));
  EXPECT_THAT(text, HasSubstr("muster: 2 lines are missing here: the console did not keep up\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("lost")));
  console.write(Console::Stream::out, "back\n");
  EXPECT_THAT(read_all(), EndsWith("back\n"));
}

TEST_F(ConsoleTest, PausedReadersResumeWhenThereIsRoom) {
  Console console(io.get_executor(), writer.get(), writer.get(), {64 * 1024, 1h});
  while (!console.full(Console::Stream::out)) console.write(Console::Stream::out, lines_of(16 * 1024));
  bool resumed = false;
  console.when_room(Console::Stream::out, [&] { resumed = true; });
  io.poll();
  EXPECT_FALSE(resumed);
  read_until_quiet();
  EXPECT_TRUE(resumed);
  EXPECT_EQ(console.dropped_lines(), 0u);
}

TEST_F(ConsoleTest, AReaderThatWentAwayIsCountedAndHoldsNobody) {
  Console console(io.get_executor(), writer.get(), writer.get(), limits);
  reader.reset();
  console.write(Console::Stream::out, "one\n");
  console.write(Console::Stream::out, lines_of(200'000));
  EXPECT_FALSE(console.full(Console::Stream::out));
  EXPECT_GT(console.dropped_lines(), 1u);
}

TEST_F(ConsoleTest, AFullDiskUnderStdoutIsCountedAndToldOnStderr) {
  UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Console console(io.get_executor(), full.get(), writer.get(), limits);
  for (int i = 0; i < 1000; ++i) console.write(Console::Stream::out, "a line\n");
  EXPECT_EQ(console.dropped_lines(), 1000u);
  console.drain(1s);
  EXPECT_EQ(read_all(),
            "muster: 1000 lines could not be written to standard output: No space left on device (ENOSPC); "
            "log files "
            "have them, where there are any\n");
}

TEST_F(ConsoleTest, ADiskThatHasRoomAgainIsToldWhatIsMissing) {
  UniqueFd disk(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Console console(io.get_executor(), disk.get(), disk.get(), limits);
  for (int i = 0; i < 3; ++i) console.write(Console::Stream::out, "lost\n");
  const UniqueFd with_room(::memfd_create("disk", MFD_CLOEXEC));
  ASSERT_EQ(::dup3(with_room.get(), disk.get(), O_CLOEXEC), disk.get());
  console.write(Console::Stream::out, "back\n");
  std::array<char, 1024> text{};
  ASSERT_GT(::pread(with_room.get(), text.data(), text.size() - 1, 0), 0);
  EXPECT_STREQ(text.data(), "muster: 3 lines are missing here: No space left on device (ENOSPC)\nback\n");
}

TEST_F(ConsoleTest, StdoutAndStderrOnOneFileShareOneQueue) {
  UniqueFd other(::dup(writer.get()));
  Console console(io.get_executor(), writer.get(), other.get(), limits);
  const std::string block = lines_of(80'000);
  console.write(Console::Stream::out, block);  // more than the pipe takes: the end waits in the queue
  console.write(Console::Stream::err, "after\n");
  const std::string text = read_until_quiet();
  EXPECT_EQ(text, block + "after\n");
}

TEST_F(ConsoleTest, ASocketIsWrittenWithoutBlocking) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  reader.reset(ends[0]);
  writer.reset(ends[1]);
  ASSERT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
  Console console(io.get_executor(), writer.get(), writer.get(), {8 * 1024 * 1024, 50ms});
  const std::string sent = lines_of(2'000'000);
  console.write(Console::Stream::out, sent);
  EXPECT_EQ(read_until_quiet(), sent);
}

TEST_F(ConsoleTest, LinesAfterAPartBeginOnALineOfTheirOwn) {
  Console console(io.get_executor(), writer.get(), writer.get(), limits);
  console.write_part(Console::Stream::out, " 50%");
  console.write_part(Console::Stream::out, " 60%");
  console.write(Console::Stream::err, "muster: done\n");
  console.write(Console::Stream::err, "muster: really\n");
  EXPECT_EQ(read_all(), " 50% 60%\nmuster: done\nmuster: really\n");
}

TEST_F(ConsoleTest, DrainIsBoundedWhenNobodyReads) {
  Console console(io.get_executor(), writer.get(), writer.get(), limits);
  while (!console.full(Console::Stream::out)) console.write(Console::Stream::out, lines_of(16 * 1024));
  const auto begin = std::chrono::steady_clock::now();
  console.drain(100ms);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 90ms);
  EXPECT_LT(took, 3s);
}

TEST_F(ConsoleTest, OurOwnLinesAreKeptWhileWorkersLinesAreDropped) {
  Console console(io.get_executor(), writer.get(), writer.get(), limits);
  const std::string block = lines_of(16 * 1024);
  while (!console.full(Console::Stream::out)) console.write(Console::Stream::out, block);
  bool resumed = false;
  console.when_room(Console::Stream::out, [&] { resumed = true; });
  while (!resumed) ASSERT_GT(io.run_one_for(5s), 0u);
  console.write(Console::Stream::out, "lost\n");
  console.say(Console::Stream::err, "muster: job k FAILED\n");
  EXPECT_THAT(read_until_quiet(), EndsWith("muster: 1 lines are missing here: the console did not keep up\n"
                                           "muster: job k FAILED\n"));
}

TEST_F(ConsoleTest, DrainWaitsForAReaderThatGetsOnHoweverSlowly) {
  Console console(io.get_executor(), writer.get(), writer.get(), {1024 * 1024, 50ms});
  const std::string sent = lines_of(600'000);
  console.write(Console::Stream::out, sent);
  std::string text;
  std::thread slow([&] {
    const Instant deadline = std::chrono::steady_clock::now() + 30s;
    while (text.size() < sent.size() && std::chrono::steady_clock::now() < deadline) {
      text += read_all();
      std::this_thread::sleep_for(60ms);
    }
  });
  console.drain(300ms);  // all of it takes longer than this
  slow.join();
  EXPECT_EQ(text, sent);
  EXPECT_EQ(console.dropped_lines(), 0u);
}

TEST_F(ConsoleTest, ASignalEndsTheDrainAndWhatIsLostIsCounted) {
  Console console(io.get_executor(), writer.get(), writer.get(), limits);
  const std::string sent = lines_of(100'000);
  console.write(Console::Stream::out, sent);
  const UniqueFd signalled(::eventfd(1, EFD_CLOEXEC));
  const auto begin = std::chrono::steady_clock::now();
  console.drain(60s, signalled.get());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  const std::string text = read_all();
  EXPECT_LT(text.size(), sent.size());
  EXPECT_EQ(console.dropped_lines() + static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')),
            static_cast<std::uint64_t>(std::count(sent.begin(), sent.end(), '\n')));
}

TEST_F(ConsoleTest, StderrTellsWhatStdoutLostThoughNothingFailed) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd unread(ends[0]);
  const UniqueFd out(ends[1]);
  Console console(io.get_executor(), out.get(), writer.get(), limits);
  console.write(Console::Stream::out, lines_of(100'000));
  console.say(Console::Stream::err, "muster: job k succeeded\n");
  EXPECT_EQ(read_all(), "muster: job k succeeded\n") << "before the wait for stdout";
  console.drain(3s);
  const std::string text = read_all();
  EXPECT_THAT(
      text,
      StartsWith("muster: standard output is not read: waiting for its reader, for 3 s at most; a signal "
                 "ends the wait\nmuster: "));
  EXPECT_THAT(
      text, EndsWith(std::to_string(console.dropped_lines()) +
                     " lines could not be written to standard output: nobody reads it; log files have them, "
                     "where there are any\n"));
  EXPECT_GT(console.dropped_lines(), 0u);
}

TEST_F(ConsoleTest, AClosedDescriptorIsNoError) {
  writer.reset();
  Console console(io.get_executor(), 1234, 1235, limits);
  console.write(Console::Stream::err, "nobody\n");
  EXPECT_EQ(console.dropped_lines(), 1u);
}

TEST_F(ConsoleTest, TheProcessHasOneForEachLoop) {
  EXPECT_EQ(Console::of(io.get_executor()), Console::of(io.get_executor()));
}

}  // namespace
}  // namespace muster::agent
