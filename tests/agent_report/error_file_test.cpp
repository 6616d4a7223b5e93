#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "agent/report/report.hpp"

namespace muster::agent {
namespace {

struct ErrorFileTest : ::testing::Test {
  ErrorFileTest() {
    std::string pattern = ::testing::TempDir() + "error_file_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  ~ErrorFileTest() override { std::filesystem::remove_all(folder); }

  std::optional<ErrorFile> read(const std::string& text) const {
    std::ofstream(folder / "error.json") << text;
    return read_error_file(folder / "error.json");
  }

  std::filesystem::path folder;
};

TEST_F(ErrorFileTest, TheTracebackIsPreferred) {
  EXPECT_EQ(read(R"({"message": {"message": "ValueError: no", "extraInfo":
                    {"py_callstack": "Traceback\n  line 42\nValueError: no\n", "timestamp": "1700000000"}}})"),
            (ErrorFile{"Traceback\n  line 42\nValueError: no\n"}));
  EXPECT_EQ(
      read(R"({"message": {"message": "KeyError: ", "extraInfo": {"py_callstack": "line 42\nKeyError\n"}}})"),
      (ErrorFile{"line 42\nKeyError\n"}));
}

TEST_F(ErrorFileTest, ACallStackThatDoesNotSayWhatHappenedIsEndedWithTheMessage) {
  EXPECT_EQ(
      read(
          R"({"message": {"message": "ValueError: no", "extraInfo": {"py_callstack": "Stack\n  line 42\n"}}})"),
      (ErrorFile{"Stack\n  line 42\nValueError: no"}));
}

TEST_F(ErrorFileTest, ElseTheMessage) {
  EXPECT_EQ(read(R"({"message": {"message": "ValueError: no", "extraInfo": {}}})"),
            ErrorFile{"ValueError: no"});
  EXPECT_EQ(read(R"({"message": "plain text", "timestamp": 1700000000})"), ErrorFile{"plain text"});
}

TEST_F(ErrorFileTest, OfALongTracebackTheEndIsKept) {
  std::string frames;
  for (int number = 0; number < 5000; ++number) frames += "  frame of a call\\n";
  const auto file =
      read(R"({"message": {"extraInfo": {"py_callstack": ")" + frames + R"(ValueError: no"}}})");
  ASSERT_TRUE(file);
  EXPECT_LE(file->message.size(), 32u * 1024);
  EXPECT_TRUE(file->message.starts_with("  frame of a call\n"));
  EXPECT_TRUE(file->message.ends_with("\nValueError: no"));
}

TEST_F(ErrorFileTest, AWorkerMaySayThatTryingAgainCannotHelp) {
  const auto with = [&](const std::string& value) {
    return read(R"({"message": {"message": "no data", "extraInfo": {"permanent": )" + value + "}}}");
  };
  EXPECT_EQ(with("true"), (ErrorFile{"no data", true}));
  for (const char* value : {"false", "null", "1", R"("true")", "{}"})
    EXPECT_EQ(with(value), (ErrorFile{"no data", false})) << value;
}

TEST_F(ErrorFileTest, ABrokenFileIsNone) {
  for (const char* text : {"", "{", "[]", "null", "7", R"({"message": 7})", R"({"message": {"message": []}})",
                           R"({"message": {"extraInfo": "x"}})", R"({"message": ""})", "\xff\xfe"})
    EXPECT_EQ(read(text), std::nullopt) << text;
}

TEST_F(ErrorFileTest, AMissingOrHugeFileOrAFolderIsNone) {
  EXPECT_EQ(read_error_file(folder / "none"), std::nullopt);
  EXPECT_EQ(read_error_file(folder), std::nullopt);
  EXPECT_EQ(read(R"({"message": ")" + std::string(2'000'000, 'x') + R"("})"), std::nullopt);
}

}  // namespace
}  // namespace muster::agent
