// Runs the real muster with muster_test_child as its workers.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::test {

inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

inline const std::string kMuster = MUSTER_BIN_DIR "/muster";
inline const std::string kChild = MUSTER_BIN_DIR "/muster_test_child";

/// muster OPTIONS muster_test_child STEPS; words are parted by blanks.
inline std::vector<std::string> muster_command(const std::string& options, const std::string& steps) {
  std::vector<std::string> command{kMuster};
  for (auto& word : words_of(options)) command.push_back(word);
  command.push_back(kChild);
  for (auto& word : words_of(steps)) command.push_back(word);
  return command;
}

/// A job's temporary folder and the mark by which everything it started is found again.
struct Job {
  TemporaryFolder folder;
  std::string mark = unique_mark("job");

  ProgramOptions options() const {
    ProgramOptions result;
    result.variables = {{"MUSTER_TEST_JOB", mark}, {"TMPDIR", folder.path()}};
    result.without = {"OMP_NUM_THREADS", "PYTHONUNBUFFERED"};
    return result;
  }
  Finished run(const std::string& muster_options, const std::string& steps) const {
    return test::run(muster_command(muster_options, steps), options());
  }
  bool nothing_left(Duration limit = std::chrono::seconds(2)) const {
    return all_gone("MUSTER_TEST_JOB", mark, limit);
  }
};

inline long count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

/// Lines that begin with "muster: ".
inline long launcher_lines(const std::string& text) {
  std::istringstream lines(text);
  long count = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("muster: ")) ++count;
  return count;
}

}  // namespace muster::test
