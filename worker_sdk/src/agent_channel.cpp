#include "worker_sdk/src/agent_channel.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace muster::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kProgressInterval{100};
constexpr milliseconds kPatienceForSafe{1000};

/// Its errno where nobody listens.
Result<UniqueFd> connect_to(const std::string& name) {
  ::sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) return errno_error(name, ENAMETOOLONG);
  std::memcpy(address.sun_path, name.data(), name.size());
  const bool is_abstract = name.starts_with('@');
  if (is_abstract) address.sun_path[0] = '\0';
  const auto size = offsetof(::sockaddr_un, sun_path) + name.size() + (is_abstract ? 0 : 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno_error(name, errno);
  if (::connect(fd.get(), reinterpret_cast<const ::sockaddr*>(&address), static_cast<::socklen_t>(size)) != 0)
    return errno_error(name, errno, "this worker cannot be asked to save before the job changes its size");
  return fd;
}

}  // namespace

std::unique_ptr<AgentChannel> AgentChannel::connect(const Environment& environment) {
  const char* name = std::getenv(kWorkerChannelVariable);
  if (!name || !*name) return nullptr;
  auto fd = connect_to(name);
  if (fd) return std::make_unique<AgentChannel>(std::move(*fd), environment);
  fmt::print(stderr, "rank {}: {} {}\n", environment.rank, kWorkerChannelVariable, fd.error().sentence());
  return nullptr;
}

AgentChannel::AgentChannel(UniqueFd fd, const Environment& environment) : fd_(std::move(fd)) {
  send(worker_line(HelloLine{.round = environment.round, .local_rank = environment.local_rank}),
       kPatienceForSafe);
}

void AgentChannel::progress(std::int64_t step) {
  const auto now = steady_clock::now();
  if (now - progress_sent_at_ < kProgressInterval) return;
  progress_sent_at_ = now;
  send(worker_line(ProgressLine{step}), milliseconds(0));
}

void AgentChannel::safe(std::int64_t step) { send(worker_line(SafeLine{step}), kPatienceForSafe); }

void AgentChannel::done() { send(worker_line(DoneLine{}), kPatienceForSafe); }

// A Unix socket takes a line this short whole or not at all.
void AgentChannel::send(const std::string& text, milliseconds patience) {
  if (!fd_) return;
  ::pollfd ready{fd_.get(), POLLOUT, 0};
  while (::send(fd_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return fd_.reset();
    if (patience == milliseconds(0)) return;
    if (::poll(&ready, 1, static_cast<int>(patience.count())) == 0) return;
  }
}

bool AgentChannel::asked_to_save() {
  std::array<char, 256> bytes;
  while (fd_) {
    const auto count = ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    const auto lines = count > 0 ? reader_.put({bytes.data(), static_cast<std::size_t>(count)})
                                 : Result<std::vector<WorkerLine>>(std::vector<WorkerLine>());
    if (count <= 0 || !lines) fd_.reset();
    if (!lines) break;
    for (const WorkerLine& line : *lines) asked_to_save_ |= std::holds_alternative<SaveLine>(line);
  }
  return asked_to_save_;
}

}  // namespace muster::worker
