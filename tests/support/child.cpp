// muster_test_child: a worker that misbehaves on request, so that no test depends on a shell.
//
//   muster_test_child STEP [then STEP]...
//
// Steps run in order; after the last one the program exits with 0. In file names {rank}, {round} and {pid}
// stand for RANK, MUSTER_ROUND and the process id.
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using Words = std::vector<std::string>;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "muster_test_child: %s\n", what.c_str());
  std::exit(99);
}

long number(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') die("not a number: " + text);
  return value;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string filled(std::string text) {
  const std::pair<std::string, std::string> marks[] = {{"{rank}", variable("RANK")},
                                                       {"{round}", variable("MUSTER_ROUND")},
                                                       {"{pid}", std::to_string(getpid())}};
  for (const auto& [mark, value] : marks)
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark))
      text.replace(at, mark.size(), value);
  return text;
}

int signal_number(const std::string& name) {
  for (int number_ = 1; number_ < NSIG; ++number_) {
    const char* known = sigabbrev_np(number_);
    if (known && (name == known || name == std::string("SIG") + known)) return number_;
  }
  return static_cast<int>(number(name));
}

void write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) die(std::string("write: ") + std::strerror(errno));
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

// Under its final name the file is there whole or not at all.
void write_file(const std::string& path, const std::string& text) {
  const std::string partial = path + ".partial." + std::to_string(getpid());
  const int fd = ::open(partial.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) die(partial + ": " + std::strerror(errno));
  write_all(fd, text.data(), text.size());
  if (::close(fd) != 0 || ::rename(partial.c_str(), path.c_str()) != 0)
    die(path + ": " + std::strerror(errno));
}

void sleep_ms(long milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

[[noreturn]] void wait_for_ever() {
  for (;;) ::pause();
}

void print(int fd, const Words& words) {
  const long lines = number(words[0]);
  std::string block;
  for (long line = 0; line < lines; ++line) {
    block += words[1] + " " + std::to_string(line) + "\n";
    if (block.size() > 60'000 || line + 1 == lines) {
      write_all(fd, block.data(), block.size());
      block.clear();
    }
  }
}

// When each line was written, in milliseconds of the monotonic clock.
void print_stamps(const Words& words) {
  for (long line = 0; line < number(words[0]); ++line) {
    sleep_ms(number(words[1]));
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    char text[64];
    const int size =
        std::snprintf(text, sizeof text, "stamp %.3f\n",
                      static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6);
    write_all(STDOUT_FILENO, text, static_cast<std::size_t>(size));
  }
}

void write_text(int fd, const std::string& text) { write_all(fd, text.data(), text.size()); }

void print_environment(const Words& words) {
  std::string block;
  for (char** entry = environ; *entry; ++entry) block.append(*entry).push_back('\0');
  write_file(filled(words[0]), block);
}

void print_descriptors(const Words& words) {
  std::string block;
  DIR* folder = ::opendir("/proc/self/fd");
  if (!folder) die("/proc/self/fd cannot be read");
  while (const dirent* entry = ::readdir(folder)) {
    const std::string name = entry->d_name;
    if (name[0] != '.' && name != std::to_string(::dirfd(folder))) block += name + "\n";
  }
  ::closedir(folder);
  write_file(filled(words[0]), block);
}

// A default for each signal that is blocked or ignored shows what the launcher left behind.
void print_signals(const Words& words) {
  std::string block;
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  for (int number_ = 1; number_ < NSIG; ++number_) {
    struct sigaction action {};
    if (::sigaction(number_, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
      block += "ignored " + std::to_string(number_) + "\n";
    if (::sigismember(&blocked, number_) == 1) block += "blocked " + std::to_string(number_) + "\n";
  }
  write_file(filled(words[0]), block);
}

void eat_memory(const Words& words) {
  const std::size_t bytes = static_cast<std::size_t>(number(words[0])) << 20;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die(std::string("mmap: ") + std::strerror(errno));
  std::memset(memory, 1, bytes);
}

// The grandchild keeps stdout and stderr, writes its process id and sleeps.
void fork_grandchild(const Words& words, bool own_session) {
  const std::string path = filled(words[0]);
  const long milliseconds = number(words[1]);
  const pid_t pid = ::fork();
  if (pid < 0) die(std::string("fork: ") + std::strerror(errno));
  if (pid > 0) return;
  if (own_session && ::setsid() < 0) die(std::string("setsid: ") + std::strerror(errno));
  write_file(path, std::to_string(::getpid()));
  sleep_ms(milliseconds);
  ::_exit(0);
}

// Nothing about it tells whose it is: a session of its own, and an environment of its own, which is empty.
void fork_hidden_grandchild(const Words& words) {
  std::string path = filled(words[0]);
  const pid_t pid = ::fork();
  if (pid < 0) die(std::string("fork: ") + std::strerror(errno));
  if (pid > 0) return;
  if (::setsid() < 0) die(std::string("setsid: ") + std::strerror(errno));
  std::string program = "hidden", write_pid = "pid", then = "then", hang = "hang";
  char* const arguments[] = {program.data(), write_pid.data(), path.data(),
                             then.data(),    hang.data(),      nullptr};
  char* const environment[] = {nullptr};
  ::execve("/proc/self/exe", arguments, environment);
  die(std::string("execve: ") + std::strerror(errno));
}

void wait_for_file(const Words& words) {
  const std::string path = filled(words[0]);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (::access(path.c_str(), F_OK) != 0) {
    if (std::chrono::steady_clock::now() > deadline) die(path + ": not there after 60 s");
    sleep_ms(2);
  }
}

// Connects to where the worker store must be.
void dial_store(const Words&) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string host = variable("MASTER_ADDR");
  const std::string port = variable("MASTER_PORT");
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) die("no address: " + host + " " + port);
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, found->ai_addr, found->ai_addrlen) != 0)
    die("connect to " + host + " port " + port + ": " + std::strerror(errno));
  ::freeaddrinfo(found);
  ::close(fd);
}

int code_on_term = 0;

void exit_on_term(const Words& words) {
  code_on_term = static_cast<int>(number(words[0]));
  ::signal(SIGTERM, [](int) { ::_exit(code_on_term); });
}

void stamp(const Words& words) {
  const std::string path = filled(words[0]);
  write_file(path, "");  // the file is made first, so that less comes between the time and what follows
  timespec now{};
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) die(path + ": " + std::strerror(errno));
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::string text = std::to_string(now.tv_sec * 1'000'000'000LL + now.tv_nsec);
  write_all(fd, text.data(), text.size());
  ::close(fd);
}

volatile sig_atomic_t caught = 0;

void catch_signal(const Words& words) {
  ::signal(signal_number(words[0]), [](int) { caught = 1; });
}
void await_caught(const Words&) {
  while (!caught) sleep_ms(2);
}

sigset_t only(const std::string& name) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal_number(name));
  return set;
}

// Held back until "take", so that none comes too early.
void hold_signal(const Words& words) {
  const sigset_t set = only(words[0]);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

void take_signal(const Words& words) {
  const sigset_t set = only(words[0]);
  int taken = 0;
  if (::sigwait(&set, &taken) != 0) die("sigwait");
}

void expect_no_second(const Words& words) {
  sigset_t pending;
  ::sigpending(&pending);
  if (::sigismember(&pending, signal_number(words[0])) == 1) die(words[0] + " came a second time");
}

void write_error_file(const Words& words) {
  write_file(variable("TORCHELASTIC_ERROR_FILE"),
             R"({"message": {"message": ")" + words[0] +
                 R"(", "extraInfo": {"py_callstack": "Traceback\n  line 42\n)" + words[0] +
                 R"(", "timestamp": "1700000000"}}})");
}

void signal_itself(const Words& words) {
  const int number_ = signal_number(words[0]);
  // A sanitizer's own handler would turn the signal into an exit code. SIGKILL and SIGSTOP have no disposition.
  if (number_ != SIGKILL && number_ != SIGSTOP && ::signal(number_, SIG_DFL) == SIG_ERR)
    die(std::string("signal: ") + std::strerror(errno));
  if (::kill(::getpid(), number_) != 0) die(std::string("kill: ") + std::strerror(errno));
}

struct Step {
  const char* name;
  std::size_t arguments;
  void (*run)(const Words&);
};

constexpr Step kSteps[] = {
    {"exit", 1, [](const Words& words) { std::exit(static_cast<int>(number(words[0]))); }},
    {"signal", 1, signal_itself},                                          // NAME or number, to itself
    {"sleep", 1, [](const Words& words) { sleep_ms(number(words[0])); }},  // milliseconds
    {"wait", 0, [](const Words&) { wait_for_ever(); }},                    // until a signal ends it
    {"hang", 0,
     [](const Words&) {
       ::signal(SIGTERM, SIG_IGN);
       wait_for_ever();
     }},
    {"ignore", 1, [](const Words& words) { ::signal(signal_number(words[0]), SIG_IGN); }},
    {"exit-on-term", 1, exit_on_term},                                             // CODE
    {"stamp", 1, stamp},                                                           // FILE: the time in ns
    {"catch", 1, catch_signal},                                                    // NAME
    {"await-caught", 0, await_caught},                                             // the one of "catch"
    {"hold", 1, hold_signal},                                                      // NAME
    {"take", 1, take_signal},                                                      // NAME, once held
    {"no-second", 1, expect_no_second},                                            // NAME, once held
    {"eat", 1, eat_memory},                                                        // MiB
    {"grandchild", 2, [](const Words& words) { fork_grandchild(words, false); }},  // PIDFILE MILLISECONDS
    {"session-grandchild", 2, [](const Words& words) { fork_grandchild(words, true); }},
    {"hidden-grandchild", 1, fork_hidden_grandchild},  // PIDFILE
    {"out", 2,
     [](const Words& words) { print(STDOUT_FILENO, words); }},  // LINES TEXT: "TEXT 0", "TEXT 1" ...
    {"err", 2, [](const Words& words) { print(STDERR_FILENO, words); }},
    {"stamps", 2, print_stamps},  // LINES MILLISECONDS between them
    {"out-part", 1, [](const Words& words) { write_text(STDOUT_FILENO, words[0]); }},  // no newline
    {"err-part", 1, [](const Words& words) { write_text(STDERR_FILENO, words[0]); }},
    {"env", 1, print_environment},  // FILE, NUL-separated
    {"fds", 1, print_descriptors},  // FILE
    {"signals", 1, print_signals},  // FILE
    {"pid", 1, [](const Words& words) { write_file(filled(words[0]), std::to_string(::getpid())); }},
    {"touch", 1, [](const Words& words) { write_file(filled(words[0]), ""); }},
    {"await", 1, wait_for_file},          // FILE
    {"dial", 0, dial_store},              // MASTER_ADDR, MASTER_PORT
    {"error-file", 1, write_error_file},  // MESSAGE, in torchrun's format
};

// "if-rank 1", "if-round 2": the steps after it are done only there; "end" ends the condition.
bool condition_holds(const Words& step) {
  const std::string value = variable(step[0] == "if-rank" ? "RANK" : "MUSTER_ROUND");
  return value == step[1];
}

void run_step(const Words& step) {
  const auto known = std::find_if(std::begin(kSteps), std::end(kSteps),
                                  [&](const Step& candidate) { return step[0] == candidate.name; });
  if (known == std::end(kSteps)) die("unknown step: " + step[0]);
  if (step.size() != known->arguments + 1)
    die(step[0] + " takes " + std::to_string(known->arguments) + " arguments");
  known->run(Words(step.begin() + 1, step.end()));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Words> steps(1);
  for (int index = 1; index < argc; ++index) {
    if (std::strcmp(argv[index], "then") == 0)
      steps.emplace_back();
    else
      steps.back().emplace_back(argv[index]);
  }
  bool active = true;
  for (const Words& step : steps) {
    if (step.empty()) continue;
    if (step[0] == "if-rank" || step[0] == "if-round") {
      if (step.size() != 2) die(step[0] + " takes 1 argument");
      active = active && condition_holds(step);
    } else if (step[0] == "end") {
      active = true;
    } else if (active) {
      run_step(step);
    }
  }
  return 0;
}
