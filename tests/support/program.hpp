// Runs a program as a user would: with a deadline, and with all of its output at hand.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "base/unique_fd.hpp"

namespace muster::test {

struct Finished {
  int code = -1;  ///< as a shell gives it: 128 + n for signal n
  bool timed_out = false;
  std::string out;
  std::string err;
  Duration took{};
};

struct ProgramOptions {
  std::map<std::string, std::string> variables;  ///< added to this process's environment
  std::vector<std::string> without;              ///< variables taken out of it
  std::string folder;                            ///< to start in; empty: the current one
};

/// It gets SIGKILL when this object goes, or this process.
class Program {
 public:
  explicit Program(std::vector<std::string> command, ProgramOptions options = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int signal_number) const;
  /// True as soon as its stdout and stderr together hold `text`; false at the deadline or its end.
  bool wait_for(const std::string& text, Duration limit);
  /// At the deadline it is killed.
  Finished wait(Duration limit);

 private:
  bool read_more(Instant deadline);

  pid_t pid_ = -1;
  UniqueFd out_;
  UniqueFd err_;
  UniqueFd ended_;  // a pidfd
  bool waited_ = false;
  Finished finished_;
  Instant started_;
};

Finished run(std::vector<std::string> command, ProgramOptions options = {},
             Duration limit = std::chrono::seconds(60));

/// Processes (no zombies) whose environment holds "name=value": what a job left behind, wherever it went.
std::vector<pid_t> processes_with(const std::string& name, const std::string& value);

/// True as soon as there is none.
bool all_gone(const std::string& name, const std::string& value, Duration limit);

/// "name-PID-COUNT": never the same twice on this machine.
std::string unique_mark(const std::string& name);

}  // namespace muster::test
