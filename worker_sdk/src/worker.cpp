#include "muster/worker/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "worker_sdk/src/agent_channel.hpp"
#include "worker_sdk/src/gloo_group.hpp"
#include "worker_sdk/src/local_address.hpp"
#include "worker_sdk/src/single_group.hpp"
#include "worker_sdk/src/store_host.hpp"
#include "worker_sdk/src/store_link.hpp"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

milliseconds until(steady_clock::time_point deadline) {
  return std::max(std::chrono::ceil<milliseconds>(deadline - steady_clock::now()), milliseconds(1));
}

/// Some launchers keep one store for all rounds and restarts: each of them gets keys of its own.
std::string key_prefix(const Environment& environment) {
  return fmt::format("muster/round-{}/restart-{}", environment.round, environment.restart_count);
}

}  // namespace

struct Worker::Impl {
  WorkerOptions options;
  std::unique_ptr<AgentChannel> agent;  ///< none: nobody asks and nobody listens
  // In this order: the group ends first, the store that it asks last.
  std::unique_ptr<StoreHost> host;
  std::unique_ptr<ProcessGroup> group;

  std::unique_ptr<ProcessGroup> make_group(const Environment& environment);
};

std::unique_ptr<ProcessGroup> Worker::Impl::make_group(const Environment& environment) {
  if (environment.world_size == 1) return make_single_group();
  const auto deadline = steady_clock::now() + options.join_timeout;
  const Endpoint server{environment.master_addr, environment.master_port};
  const auto address = local_address_towards(server.host, server.port);
  const bool hosting = !environment.agent_store && environment.rank == 0;
  if (hosting && !host) host = std::make_unique<StoreHost>(address, server.port);
  const auto store = std::make_shared<StoreLink>(server, key_prefix(environment), until(deadline));

  GlooOptions gloo;
  gloo.mesh.rank = environment.rank;
  gloo.mesh.size = environment.world_size;
  gloo.mesh.prefix = "world";
  gloo.mesh.address = address;
  if (const char* name = std::getenv("GLOO_SOCKET_IFNAME")) gloo.mesh.interface_name = name;
  gloo.mesh.timeout = until(deadline);
  gloo.collective_timeout = options.collective_timeout;
  auto formed = make_gloo_group(gloo, store);
  // A store in rank 0 ends with rank 0, which may have nothing more to do: not before all have read it.
  if (!environment.agent_store) formed->barrier()->wait();
  return formed;
}

Worker::Worker(Environment environment, WorkerOptions options)
    : environment_(std::move(environment)), impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  impl_->agent = AgentChannel::connect(environment_);
}

Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
Worker::~Worker() = default;

Worker Worker::join(WorkerOptions options) { return Worker(Environment::read(), options); }

ProcessGroup& Worker::process_group() {
  if (!impl_->group) impl_->group = impl_->make_group(environment_);
  return *impl_->group;
}

void Worker::progress(std::int64_t step) {
  if (impl_->agent) impl_->agent->progress(step);
}

bool Worker::asked_to_save() { return impl_->agent && impl_->agent->asked_to_save(); }

bool Worker::drain_requested() {
  std::int32_t asked = asked_to_save() ? 1 : 0;
  if (environment_.world_size > 1)
    process_group().all_reduce(buffer_of(std::span<std::int32_t>(&asked, 1)), ReduceOp::max)->wait();
  return asked != 0;
}

int Worker::drained(std::int64_t step) {
  if (impl_->agent) impl_->agent->safe(step);
  return 0;
}

}  // namespace muster::worker
