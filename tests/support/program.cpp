#include "tests/support/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::test {

namespace {

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe: " + errno_text(errno));
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<std::string> environment_with(const ProgramOptions& options) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry; ++entry) {
    const std::string name = std::string(*entry).substr(0, std::string(*entry).find('='));
    const bool out = std::find(options.without.begin(), options.without.end(), name) != options.without.end();
    if (!out && options.variables.count(name) == 0) entries.emplace_back(*entry);
  }
  for (const auto& [name, value] : options.variables) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (auto& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

void read_into(std::string& text, UniqueFd& fd) {
  char buffer[65536];
  const ssize_t size = ::read(fd.get(), buffer, sizeof buffer);
  if (size > 0)
    text.append(buffer, static_cast<std::size_t>(size));
  else if (size == 0 || errno != EINTR)
    fd.reset();
}

}  // namespace

Program::Program(std::vector<std::string> command, ProgramOptions options)
    : started_(std::chrono::steady_clock::now()) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  auto variables = environment_with(options);
  auto words = pointers(command);
  auto entries = pointers(variables);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork: " + errno_text(errno));
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_DFL);
    const bool ready = ::dup2(out.writer.get(), 1) >= 0 && ::dup2(err.writer.get(), 2) >= 0 &&
                       (options.folder.empty() || ::chdir(options.folder.c_str()) == 0);
    if (ready) ::execve(words[0], words.data(), entries.data());
    ::_exit(125);
  }
  out_ = std::move(out.reader);
  err_ = std::move(err.reader);
  ended_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

Program::~Program() {
  if (waited_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Program::signal(int signal_number) const {
  if (::kill(pid_, signal_number) != 0) throw std::runtime_error("kill: " + errno_text(errno));
}

// False when there is nothing more to come before the deadline. The program's end does not end its pipes: a
// process it left behind may hold them.
bool Program::read_more(Instant deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  pollfd waits[] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {ended_.get(), POLLIN, 0}};
  const int ready = ::poll(waits, 3, static_cast<int>(left.count()));
  if (ready < 0 && errno == EINTR) return true;
  if (ready <= 0) return false;
  if (waits[0].revents) read_into(finished_.out, out_);
  if (waits[1].revents) read_into(finished_.err, err_);
  return waits[0].revents || waits[1].revents;
}

bool Program::wait_for(const std::string& text, Duration limit) {
  const Instant deadline = std::chrono::steady_clock::now() + limit;
  const auto there = [&] {
    return finished_.out.find(text) != std::string::npos || finished_.err.find(text) != std::string::npos;
  };
  while (!there())
    if (!read_more(deadline)) return there();
  return true;
}

Finished Program::wait(Duration limit) {
  const Instant deadline = std::chrono::steady_clock::now() + limit;
  while (read_more(deadline)) {
  }
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == 0) {
    finished_.timed_out = true;
    ::kill(pid_, SIGKILL);
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  waited_ = true;
  finished_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  finished_.took = std::chrono::steady_clock::now() - started_;
  return finished_;
}

Finished run(std::vector<std::string> command, ProgramOptions options, Duration limit) {
  return Program(std::move(command), std::move(options)).wait(limit);
}

std::vector<pid_t> processes_with(const std::string& name, const std::string& value) {
  std::vector<pid_t> found;
  const std::string wanted = '\0' + name + "=" + value + '\0';
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = parse_integer(entry.path().filename(), 1, INT32_MAX);
    if (!pid || *pid == ::getpid()) continue;
    const std::string variables = '\0' + content(entry.path() / "environ");
    if (variables.find(wanted) != std::string::npos) found.push_back(static_cast<pid_t>(*pid));
  }
  return found;
}

bool all_gone(const std::string& name, const std::string& value, Duration limit) {
  const Instant deadline = std::chrono::steady_clock::now() + limit;
  while (!processes_with(name, value).empty()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // /proc gives no events
  }
  return true;
}

std::string unique_mark(const std::string& name) {
  static std::atomic<int> count{0};
  return name + "-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

}  // namespace muster::test
