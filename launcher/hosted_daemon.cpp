#include "launcher/hosted_daemon.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <csignal>

namespace muster::launcher {

namespace {

using boost::asio::ip::tcp;

constexpr int kFirstListenFd = 3;

Result<UniqueFd> listen_at(const Address& address, std::uint16_t port) {
  const tcp::endpoint where(address, port);
  const std::string what = "listening on " + Endpoint{address.to_string(), port}.text();
  UniqueFd fd(::socket(where.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno_error(what, errno);
  // A port that an earlier daemon's closed connections linger on is free; both families only for "::".
  const int yes = 1;
  const int v6_only = address.is_unspecified() ? 0 : 1;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      (address.is_v6() && ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only) != 0) ||
      ::bind(fd.get(), where.data(), static_cast<socklen_t>(where.size())) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0)
    return errno_error(what, errno);
  return fd;
}

// posix_spawn's lists, freed whatever happens.
struct SpawnLists {
  SpawnLists() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnLists() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnLists(const SpawnLists&) = delete;
  SpawnLists& operator=(const SpawnLists&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// Numbers above all that are wanted, so that no source is overwritten before it is copied.
Result<std::vector<UniqueFd>> out_of_the_way(const std::vector<UniqueFd>& fds) {
  const int lowest = kFirstListenFd + static_cast<int>(fds.size());
  std::vector<UniqueFd> copies;
  for (const UniqueFd& fd : fds) {
    copies.emplace_back(::fcntl(fd.get(), F_DUPFD_CLOEXEC, lowest));
    if (!copies.back()) return errno_error("handing over the listening socket", errno);
  }
  return copies;
}

int prepare(SpawnLists& lists, const DaemonCommand& command, const std::vector<UniqueFd>& listeners) {
  const std::string log = command.log_file.empty() ? "/dev/null" : command.log_file.string();
  auto* actions = &lists.actions;
  int error = ::posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  if (!error)
    error = ::posix_spawn_file_actions_addopen(actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (!error) error = ::posix_spawn_file_actions_adddup2(actions, 1, 2);
  int next = kFirstListenFd;
  for (const UniqueFd& listener : listeners)
    if (!error) error = ::posix_spawn_file_actions_adddup2(actions, listener.get(), next++);
  if (!error) error = ::posix_spawn_file_actions_addclosefrom_np(actions, next);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  if (!error) error = ::posix_spawnattr_setsigmask(&lists.attributes, &none);
  if (!error) error = ::posix_spawnattr_setsigdefault(&lists.attributes, &all);
  if (!error)
    error = ::posix_spawnattr_setflags(&lists.attributes,
                                       POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  return error;
}

}  // namespace

Result<Listeners> listen_unless_taken(const std::vector<Address>& addresses, std::uint16_t port) {
  std::vector<UniqueFd> listeners;
  Error failure{"listening on port " + std::to_string(port), "there is no address to listen at"};
  for (const Address& address : addresses) {
    auto listener = listen_at(address, port);
    if (!listener && listener.error().error_number == EADDRINUSE) return Listeners();
    if (listener)
      listeners.push_back(std::move(*listener));
    else
      failure = listener.error();
    if (listener && address.is_unspecified() && address.is_v6()) break;
  }
  if (listeners.empty()) return failure;
  return Listeners(std::move(listeners));
}

Result<pid_t> start_daemon(const DaemonCommand& command, const std::vector<UniqueFd>& listeners) {
  const std::string path = command.musterd.string();
  const auto handed = out_of_the_way(listeners);
  if (!handed) return handed.error();
  SpawnLists lists;
  if (const int error = prepare(lists, command, *handed)) return errno_error(path, error);
  const auto idle_ms = std::chrono::duration_cast<std::chrono::milliseconds>(command.idle_limit).count();
  std::vector<std::string> words = {path,
                                    "--listen",
                                    command.endpoint.text(),
                                    "--exit-with-last-job",
                                    "--idle-limit",
                                    std::to_string(idle_ms) + "ms"};
  for (std::size_t index = 0; index < handed->size(); ++index)
    words.insert(words.end(), {"--listen-fd", std::to_string(kFirstListenFd + static_cast<int>(index))});
  if (!command.token_file.empty()) words.insert(words.end(), {"--token-file", command.token_file});
  const std::pair<const char*, const std::string&> tls[] = {{"--tls-cert", command.tls.certificate},
                                                            {"--tls-key", command.tls.key},
                                                            {"--tls-ca", command.tls.authority}};
  for (const auto& [option, file] : tls)
    if (!file.empty()) words.insert(words.end(), {option, file});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, path.c_str(), &lists.actions, &lists.attributes, arguments.data(), environ);
  if (error != 0)
    return errno_error(path, error,
                       "it hosts the rendezvous and has to lie beside muster; scripts/build makes both");
  return pid;
}

Result<std::filesystem::path> musterd_path() {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return errno_error("/proc/self/exe", error.value());
  return {boost::system::in_place_value, own.parent_path() / "musterd"};
}

}  // namespace muster::launcher
