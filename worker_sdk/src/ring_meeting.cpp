#include "worker_sdk/src/ring_meeting.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <sstream>
#include <vector>

#include "base/error.hpp"
#include "muster/worker/process_group.hpp"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t secret_length = 32;  // 16 random bytes in hexadecimal
/// Strangers that may stand at the door at a time; the oldest is shown out for the next.
constexpr std::size_t max_waiting = 16;

milliseconds until(Deadline deadline) {
  return std::max(std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()),
                  milliseconds(0));
}

int poll_limit(Deadline deadline) {
  return static_cast<int>(std::min<milliseconds::rep>(until(deadline).count(), INT_MAX));
}

CollectiveError trouble(const std::string& what, int error_number) {
  return CollectiveError(errno_error(what, error_number).sentence());
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses parse(const std::string& address, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int result = ::getaddrinfo(address.c_str(), port.c_str(), &hints, &found);
  if (result != 0) throw CollectiveError(fmt::format("address {}: {}", address, ::gai_strerror(result)));
  return Addresses(found);
}

std::string numeric_text(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  const int result = ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return result == 0 ? text.data() : "";
}

UniqueFd stream_socket(int family) {
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

std::string new_secret() {
  std::array<unsigned char, secret_length / 2> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw trouble("random bytes", errno);
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// Small messages leave at once.
void set_no_delay(const UniqueFd& fd) {
  const int on = 1;
  static_cast<void>(::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

/// Where the left neighbour knocks.
class Door {
 public:
  explicit Door(const std::string& address) : secret_(new_secret()) {
    const auto where = parse(address, "0");
    listener_ = stream_socket(where->ai_family);
    if (!listener_ || ::bind(listener_.get(), where->ai_addr, where->ai_addrlen) != 0 ||
        ::listen(listener_.get(), SOMAXCONN) != 0)
      throw trouble("listening on " + address, errno);
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    if (::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0)
      throw trouble("listening on " + address, errno);
    const auto port = own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                                : reinterpret_cast<const sockaddr_in&>(own).sin_port;
    record_ = fmt::format("{} {} {}", address, ntohs(port), secret_);
  }

  /// What the left neighbour needs: "ADDRESS PORT SECRET".
  const std::string& record() const { return record_; }

  /// Nothing at the deadline.
  UniqueFd await(Deadline deadline) {
    std::vector<Guest> waiting;
    while (std::chrono::steady_clock::now() < deadline) {
      std::vector<pollfd> ends{{listener_.get(), POLLIN, 0}};
      for (const Guest& guest : waiting) ends.push_back({guest.fd.get(), POLLIN, 0});
      if (::poll(ends.data(), ends.size(), poll_limit(deadline)) < 0 && errno != EINTR)
        throw trouble("waiting for a connection", errno);
      for (Guest& guest : waiting)
        if (guest.has_said(secret_)) return std::move(guest.fd);
      std::erase_if(waiting, [](const Guest& guest) { return guest.is_wrong; });
      if (ends[0].revents == 0) continue;
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) continue;  // it is gone already
      if (waiting.size() == max_waiting) waiting.erase(waiting.begin());
      waiting.push_back({std::move(fd), {}, false});
    }
    return {};
  }

 private:
  struct Guest {
    UniqueFd fd;
    std::string said;
    bool is_wrong = false;

    bool has_said(const std::string& secret) {
      std::array<char, secret_length> text{};
      const ssize_t count = ::recv(fd.get(), text.data(), secret_length - said.size(), MSG_DONTWAIT);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (count > 0) said.append(text.data(), static_cast<std::size_t>(count));
      is_wrong = count <= 0 || !secret.starts_with(said);
      return said == secret;
    }
  };

  std::string secret_;
  UniqueFd listener_;
  std::string record_;
};

struct Record {
  std::string address;
  std::string port;
  std::string secret;
};

UniqueFd connect_to(const Record& record, Deadline deadline) {
  const auto where = parse(record.address, record.port);
  const std::string what = fmt::format("connecting to {}:{}", record.address, record.port);
  UniqueFd fd = stream_socket(where->ai_family);
  if (!fd) throw trouble(what, errno);
  if (::connect(fd.get(), where->ai_addr, where->ai_addrlen) != 0 && errno != EINPROGRESS)
    throw trouble(what, errno);
  pollfd end{fd.get(), POLLOUT, 0};
  while (::poll(&end, 1, poll_limit(deadline)) < 0)
    if (errno != EINTR) throw trouble(what, errno);
  if (end.revents == 0) throw trouble(what, ETIMEDOUT);
  int error_number = 0;
  socklen_t length = sizeof error_number;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error_number, &length) != 0) error_number = errno;
  if (error_number != 0) throw trouble(what, error_number);
  set_no_delay(fd);
  // A new connection has room for it.
  if (::send(fd.get(), record.secret.data(), record.secret.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(record.secret.size()))
    throw trouble(what, errno);
  return fd;
}

std::string key_of(const MeshOptions& options, int rank) {
  return fmt::format("{}/ring/{}", options.prefix, rank);
}

UniqueFd connect_to_right(const MeshOptions& options, KeyValueStore& store, int right, Deadline deadline) {
  const auto found = store.get(key_of(options, right), until(deadline));
  if (!found) throw CollectiveError("it did not come");
  std::istringstream words(*found);
  Record record;
  if (!(words >> record.address >> record.port >> record.secret) || record.secret.size() != secret_length)
    throw CollectiveError("its ring address in the store is damaged");
  return connect_to(record, deadline);
}

}  // namespace

RingLink meet_neighbours(const MeshOptions& options, KeyValueStore& store, Deadline deadline) {
  const int right = (options.rank + 1) % options.size;
  const int left = (options.rank + options.size - 1) % options.size;
  Door door(options.interface_name.empty() ? options.address : address_of_interface(options.interface_name));
  store.set(key_of(options, options.rank), door.record());
  UniqueFd to_right;
  try {
    to_right = connect_to_right(options, store, right, deadline);
  } catch (const CollectiveError& error) {
    throw CollectiveError(fmt::format("rank {}: {}", options.names(right), error.what()));
  }
  UniqueFd from_left = door.await(deadline);
  if (!from_left) throw CollectiveError(fmt::format("rank {} did not connect in time", options.names(left)));
  set_no_delay(from_left);
  return {{left, std::move(from_left)}, {right, std::move(to_right)}};
}

std::string address_of_interface(const std::string& name) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw trouble("network interfaces", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(list, ::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* one = all.get(); one; one = one->ifa_next)
      if (one->ifa_addr && one->ifa_addr->sa_family == family && name == one->ifa_name)
        return numeric_text(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  throw CollectiveError("network interface " + name + " has no address");
}

}  // namespace muster::worker
