// What the tests of this folder share: a scratch folder, waiting for conditions, looking at processes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "agent/process/spawn.hpp"
#include "agent/process/worker_process.hpp"

namespace muster::agent {

using namespace std::chrono_literals;

inline const std::string child_program = std::string(MUSTER_BIN_DIR) + "/muster_test_child";

/// A child that is built with a sanitizer would report these signals and exit instead of dying of them.
inline const std::vector<std::string> no_sanitizer_handlers = {
    "ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0",
    "TSAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0"};

inline bool comes_true(const std::function<bool()>& condition, std::chrono::milliseconds limit = 10s) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline char state_of(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto close = stat.rfind(')');
  return close == std::string::npos ? '-' : stat.at(close + 2);
}

/// A zombie does nothing any more; who reaps it is another question.
inline bool alive(pid_t pid) {
  const char state = state_of(pid);
  return state != '-' && state != 'Z' && state != 'X';
}

class Processes : public ::testing::Test {
 protected:
  Processes() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster_process_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Processes() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  SpawnRequest request(std::vector<std::string> arguments) const {
    SpawnRequest wanted;
    wanted.executable = child_program;
    wanted.arguments = std::move(arguments);
    wanted.environment = no_sanitizer_handlers;
    wanted.environment.push_back("PATH=/usr/bin:/bin");
    return wanted;
  }

  pid_t start(const SpawnRequest& wanted) {
    const auto pid = spawn(io.get_executor(), wanted);
    EXPECT_TRUE(pid) << pid.error().sentence();
    return pid ? *pid : -1;
  }

  ExitCause end_of(const SpawnRequest& wanted) {
    auto worker = WorkerProcess::adopt(io.get_executor(), start(wanted));
    EXPECT_TRUE(worker);
    ExitCause cause = ExitCause::start_failed(0);
    (*worker)->on_end([&](ExitCause seen) { cause = seen; });
    run_until([&] { return !(*worker)->running(); });
    return cause;
  }

  bool run_until(const std::function<bool()>& condition, std::chrono::milliseconds limit = 10s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    io.restart();
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io.run_one_for(20ms);
      if (io.stopped()) io.restart();
    }
    return true;
  }

  pid_t pid_in(const std::string& name) const {
    EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(path(name)); })) << name;
    return std::stoi(read_file(path(name)));
  }

  boost::asio::io_context io{1};

 private:
  std::filesystem::path folder_;
};

}  // namespace muster::agent
