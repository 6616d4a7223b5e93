#include "launcher/rendezvous_host.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include "base/bare_address.hpp"
#include "base/port_holder.hpp"
#include "launcher/expected_place.hpp"
#include "launcher/hosted_daemon.hpp"
#include "rendezvous/core/policy.hpp"

namespace muster::launcher {

namespace {
constexpr int kDaemonsMax = 100;  // one that cannot live is not tried for ever
}

RendezvousHost::RendezvousHost(boost::asio::io_context& io, const Meeting& meeting,
                               std::filesystem::path log_file, Say say)
    : meeting_(meeting),
      log_file_(std::move(log_file)),
      say_(std::move(say)),
      resolver_(io),
      local_address_(meeting.local_addr) {}

Result<void> RendezvousHost::settle() {
  const auto addresses = addresses_of(meeting_.endpoint.host);
  if (addresses)
    learn(*addresses);
  else
    say_once(addresses.error().sentence() + "; looked up again until the join deadline");
  settled_ = true;
  if (no_daemon_) return *no_daemon_;
  return {};
}

void RendezvousHost::look_again() {
  if (resolved_) return host_if_needed();
  if (std::exchange(resolving_, true)) return;
  resolver_.async_resolve(meeting_.endpoint.host, "", [this](const auto& error, const auto& results) {
    if (error == boost::asio::error::operation_aborted) return;
    resolving_ = false;
    if (error) return;
    std::vector<Address> addresses;
    for (const auto& result : results) addresses.push_back(unmapped(result.endpoint().address()));
    learn(addresses);
  });
}

void RendezvousHost::learn(const std::vector<Address>& addresses) {
  const auto ours = local_addresses();
  if (!ours) return say_once(ours.error().sentence());
  resolved_ = true;
  place_ = place_of(meeting_.endpoint.host, addresses, *ours, meeting_.is_host);
  if (place_.hidden_by_loopback)
    say_once(fmt::format("{} is {} on this machine: the rendezvous listens on all addresses",
                         meeting_.endpoint.host, listed(addresses)));
  local_address_ = own_address(meeting_, place_, addresses, *ours);
  host_if_needed();
}

void RendezvousHost::host_if_needed() {
  if (!place_.here() || daemons_ >= kDaemonsMax) return;
  if (meeting_.tls.any() && meeting_.tls.certificate.empty())
    return say_once(
        "the rendezvous is not hosted here: tls_ca without tls_cert and tls_key is for its guests only");
  const auto listeners = listen_unless_taken(place_.listen_at, meeting_.endpoint.port);
  if (!listeners) return say_once(listeners.error().sentence());
  if (!*listeners) {
    was_hosted_ = true;
    return;
  }
  // Nobody listens, so the one that was started here before is gone.
  if (daemon_ > 0 && ::waitpid(daemon_, nullptr, WNOHANG) == daemon_) daemon_ = -1;
  const auto path = musterd_path();
  if (!path) return say_once(path.error().sentence());
  const auto idle_limit = meeting_.times.join.value_or(rendezvous::JobPolicy().join_deadline);
  const auto pid = start_daemon(
      {*path, meeting_.endpoint, log_file_, meeting_.token_file, meeting_.tls, idle_limit}, **listeners);
  if (!pid) {
    if (settled_) return say_once(pid.error().sentence());
    no_daemon_ = pid.error();
    return;
  }
  daemon_ = *pid;
  ++daemons_;
  if (std::exchange(was_hosted_, true))
    say_(fmt::format("nobody hosts the rendezvous at {} any more: hosted here now (musterd, pid {})",
                     meeting_.endpoint.text(), *pid));
  if (started_) started_(*pid);
}

void RendezvousHost::explain() {
  if (!resolved_) return;
  if (!place_.here()) return say_once("the rendezvous is not hosted here: " + place_.why);
  const auto holder = port_holder(meeting_.endpoint.port);
  const bool is_own = daemon_ > 0 && holder.starts_with(fmt::format("held by pid {} ", daemon_));
  if (is_own && place_.foreign)
    return say_once(
        fmt::format("the rendezvous is hosted here, as is_host says (musterd, pid {}, at all addresses), but "
                    "{} is no address of "
                    "this machine and does not lead here: name one of its own, or leave is_host out",
                    daemon_, meeting_.endpoint.host));
  if (!holder.empty() && !is_own)
    say_once(errno_error("the rendezvous cannot be hosted at " + meeting_.endpoint.text(), EADDRINUSE, holder)
                 .sentence());
}

void RendezvousHost::say_once(const std::string& line) {
  if (std::exchange(last_said_, line) != line) say_(line);
}

}  // namespace muster::launcher
