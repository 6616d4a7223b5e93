#include "base/port_holder.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kListening = "0A";

// Lines of /proc/net/tcp: "sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode ...", the
// address as hexadecimal "ADDRESS:PORT".
void add_listening_sockets(const char* table, std::uint16_t port, std::set<std::string>& links) {
  const auto suffix = fmt::format(":{:04X}", port);
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >> inode;
    if (state == kListening && local.ends_with(suffix)) links.insert("socket:[" + inode + "]");
  }
}

bool holds_one_of(const fs::path& process, const std::set<std::string>& links) {
  std::error_code error;  // other users' processes cannot be looked into
  for (fs::directory_iterator fd(process / "fd", error), end; !error && fd != end; fd.increment(error)) {
    std::error_code gone;
    if (links.contains(fs::read_symlink(fd->path(), gone).string())) return true;
  }
  return false;
}

}  // namespace

std::string port_holder(std::uint16_t port) {
  std::set<std::string> links;
  add_listening_sockets("/proc/net/tcp", port, links);
  add_listening_sockets("/proc/net/tcp6", port, links);
  if (links.empty()) return "";
  std::error_code error;
  for (fs::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    const auto pid = process->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!holds_one_of(process->path(), links)) continue;
    std::string name;
    std::ifstream(process->path() / "comm") >> name;
    return fmt::format("held by pid {} ({})", pid, name);
  }
  return "";
}

}  // namespace muster
