#include "agent/process/proc_files.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/system_files.hpp"

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

std::string folder_of(pid_t pid) { return "/proc/" + std::to_string(pid) + "/"; }

struct Stat {
  std::string command;
  char state = '?';
  pid_t parent = 0;
};

// "pid (command) state parent ..."; the command may hold anything, parentheses included.
std::optional<Stat> stat_of(pid_t pid) {
  const std::string text = text_of_file(folder_of(pid) + "stat");
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Stat stat;
  stat.command = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  if (!(rest >> stat.state >> stat.parent)) return std::nullopt;
  return stat;
}

pid_t tracer_of(pid_t pid) {
  std::ifstream file(folder_of(pid) + "status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("TracerPid:", 0) == 0) return std::stoi(line.substr(10));
  return 0;
}

// For kernels without the list of children: all processes, asked for their parent.
std::vector<pid_t> children_by_search() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = std::stoi(name);
    const auto stat = stat_of(pid);
    if (stat && stat->parent == ::getpid()) found.push_back(pid);
  }
  return found;
}

std::string meaning(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "uninterruptible sleep";
    case 'T':
      return "stopped";
    case 't':
      return "stopped by a tracer";
    case 'Z':
      return "zombie";
    default:
      return "unknown";
  }
}

}  // namespace

std::vector<pid_t> own_children() {
  std::vector<pid_t> found;
  std::error_code error;
  bool listed = false;
  for (const fs::directory_entry& task : fs::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(task.path() / "children");
    listed = listed || file.is_open();
    for (pid_t pid = 0; file >> pid;) found.push_back(pid);
  }
  return listed ? found : children_by_search();
}

std::optional<std::string> started_with(pid_t pid, const std::string& variable) {
  std::ifstream file(folder_of(pid) + "environ", std::ios::binary);
  const std::string wanted = variable + "=";
  for (std::string entry; std::getline(file, entry, '\0');)
    if (entry.compare(0, wanted.size(), wanted) == 0) return entry.substr(wanted.size());
  return std::nullopt;
}

bool minds_signal(pid_t pid, int signal_number) {
  std::ifstream file(folder_of(pid) + "status");
  for (std::string line; std::getline(file, line);) {
    const bool of_signals =
        line.starts_with("SigBlk:") || line.starts_with("SigIgn:") || line.starts_with("SigCgt:");
    if (of_signals && (std::stoull(line.substr(7), nullptr, 16) >> (signal_number - 1) & 1U) != 0)
      return true;
  }
  return false;
}

std::string name_with_command(pid_t pid) {
  constexpr std::size_t kMostBytes = 80;
  std::string command = text_of_file(folder_of(pid) + "cmdline");
  while (command.ends_with('\0')) command.pop_back();
  const auto stat = stat_of(pid);
  if (command.empty() && stat) command = stat->command;
  if (command.size() > kMostBytes) command = command.substr(0, kMostBytes) + " ...";
  for (char& byte : command)
    if (static_cast<unsigned char>(byte) < ' ' || byte == '\x7f')
      byte = ' ';  // NULs, and what moves a cursor
  const std::string name = "pid " + std::to_string(pid);
  return command.empty() ? name : name + " (" + command + ")";
}

std::string state_sentence(pid_t pid) {
  const std::string name = "pid " + std::to_string(pid);
  const auto stat = stat_of(pid);
  if (!stat) return name + " cannot be looked at under /proc";
  std::string text =
      name + " (" + stat->command + ") is in state " + stat->state + " (" + meaning(stat->state) + ")";
  const std::string channel = text_of_file(folder_of(pid) + "wchan");
  if (!channel.empty() && channel != "0") text += ", waiting in " + channel;
  if (const pid_t tracer = tracer_of(pid); tracer > 0)
    text += ", held by its tracer, pid " + std::to_string(tracer);
  return text;
}

}  // namespace muster::agent
