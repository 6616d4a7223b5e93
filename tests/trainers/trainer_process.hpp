// A trainer as a child process, alone or as a rank of a world on this machine.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "tests/trainers/tiny_mnist.hpp"

namespace muster::trainers {

constexpr std::chrono::seconds kPatience{100};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A port that stays ours: bound, so that nobody else gets it, but not listening, so that rank 0 can.
class ReservedPort {
 public:
  ReservedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        ::bind(fd_.get(), raw, length) != 0 || ::getsockname(fd_.get(), raw, &length) != 0) {
      throw std::runtime_error("no free port");
    }
    port_ = ntohs(address.sin_port);
  }
  std::uint16_t port() const { return port_; }

 private:
  UniqueFd fd_;
  std::uint16_t port_ = 0;
};

struct RankPlace {
  int rank = 0;
  int world_size = 1;
  std::uint16_t port = 0;
  std::string program = "ddp_mnist";
  int ranks_per_node = 1000;
};

/// Its output goes to the files out-N and err-N in `folder`. Killed with the object if it still runs.
class TrainerProcess {
 public:
  TrainerProcess(const std::filesystem::path& folder, std::vector<std::string> arguments,
                 RankPlace place = {})
      : out_(folder / ("out-" + std::to_string(place.rank))),
        err_(folder / ("err-" + std::to_string(place.rank))) {
    std::vector<std::string> environment;
    if (place.world_size > 1) {
      environment = {"RANK=" + std::to_string(place.rank),
                     "WORLD_SIZE=" + std::to_string(place.world_size),
                     "MASTER_ADDR=127.0.0.1",
                     "MASTER_PORT=" + std::to_string(place.port),
                     "GROUP_RANK=" + std::to_string(place.rank / place.ranks_per_node),
                     "LOCAL_RANK=" + std::to_string(place.rank % place.ranks_per_node)};
    }
    for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"}) {
      if (const char* value = ::getenv(name)) environment.push_back(std::string(name) + "=" + value);
    }
    arguments.insert(arguments.begin(), std::string(MUSTER_BIN_DIR) + "/" + place.program);
    spawn(std::move(arguments), std::move(environment));
  }
  TrainerProcess(const TrainerProcess&) = delete;
  TrainerProcess& operator=(const TrainerProcess&) = delete;
  ~TrainerProcess() {
    if (pid_ > 0 && ::kill(pid_, SIGKILL) == 0) ::waitpid(pid_, nullptr, 0);
  }

  void kill() {
    if (::kill(pid_, SIGKILL) != 0) throw std::runtime_error("the trainer is gone already");
  }

  /// Its exit code, 128 + n for signal n, -1 if it does not end in time.
  int exit_code() {
    const UniqueFd watched(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    pollfd waiting{watched.get(), POLLIN, 0};
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count();
    if (watched.get() < 0 || ::poll(&waiting, 1, static_cast<int>(patience)) != 1) return -1;
    int status = 0;
    if (::waitpid(std::exchange(pid_, 0), &status, 0) < 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string output() const { return read_text(out_); }
  std::string errors() const { return read_text(err_); }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (auto& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  }

  void spawn(std::vector<std::string> arguments, std::vector<std::string> environment) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_.c_str(), kFlags, 0600);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_.c_str(), kFlags, 0600);
    const int result = ::posix_spawn(&pid_, arguments[0].c_str(), &actions, nullptr,
                                     pointers(arguments).data(), pointers(environment).data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (result != 0) throw std::runtime_error("cannot start " + arguments[0]);
  }

  std::filesystem::path out_;
  std::filesystem::path err_;
  pid_t pid_ = 0;
};

/// A named pipe in place of a metrics file: the test sees each step when it happens. The pipe is filled in
/// advance up to the room for `lines` lines and little more, so that the trainer cannot run far ahead.
class MetricsPipe {
 public:
  MetricsPipe(std::filesystem::path path, int lines) : path_(std::move(path)), lines_(lines) {
    constexpr int kPipeBytes = 4096;  // one page, the least there is; given back when all of it is read
    constexpr int kLongestLineBytes = 70;
    constexpr int kResumedLineBytes = 250;
    if (::mkfifo(path_.c_str(), 0600) != 0) throw std::runtime_error("cannot make " + path_.string());
    // Open for writing too, so that a trainer that ends is no end of the file.
    fd_.reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    const int filling = kPipeBytes - lines * kLongestLineBytes - kResumedLineBytes;
    if (::fcntl(fd_.get(), F_SETPIPE_SZ, kPipeBytes) != kPipeBytes || filling <= 0 ||
        ::write(fd_.get(), std::string(static_cast<std::size_t>(filling - 1), '-').append("\n").data(),
                static_cast<std::size_t>(filling)) != filling) {
      throw std::runtime_error("cannot fill the pipe");
    }
  }
  const std::filesystem::path& path() const { return path_; }

  /// Waits for the trainer's lines; false if they do not come in time.
  bool wait() {
    int count = 1 + lines_;  // the filling is one
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (count > 0) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now())
              .count();
      pollfd waiting{fd_.get(), POLLIN, 0};
      char byte = 0;
      if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) != 1) return false;
      if (::read(fd_.get(), &byte, 1) != 1) return false;
      if (byte == '\n') --count;
    }
    return true;
  }

 private:
  std::filesystem::path path_;
  int lines_;
  UniqueFd fd_;
};

}  // namespace muster::trainers
