#include "muster/worker/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <stdexcept>

#include "worker_sdk/src/agent_channel.hpp"
#include "worker_sdk/src/checked_group.hpp"
#include "worker_sdk/src/device_group.hpp"
#include "worker_sdk/src/gloo_group.hpp"
#include "worker_sdk/src/group_members.hpp"
#include "worker_sdk/src/local_address.hpp"
#include "worker_sdk/src/placed_group.hpp"
#include "worker_sdk/src/single_group.hpp"
#include "worker_sdk/src/store_host.hpp"
#include "worker_sdk/src/store_link.hpp"
#include "worker_sdk/src/topology.hpp"

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

void print_line(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
  std::fflush(stderr);
}

/// Which ranks form a group, and under which name.
struct Members {
  std::string prefix;  ///< of its keys in the store
  RankNames names;
  int rank = 0;  ///< this one's in the group
  int size = 1;
};

/// `own` is among them.
Members members_of(std::string prefix, const std::string& name, std::span<const int> ranks, int own) {
  return {.prefix = std::move(prefix),
          .names = {.group = name, .world = {ranks.begin(), ranks.end()}},
          .rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), own) - ranks.begin()),
          .size = static_cast<int>(ranks.size())};
}

}  // namespace

struct Worker::Impl {
  explicit Impl(WorkerOptions worker_options) : options(worker_options) {}

  WorkerOptions options;
  std::unique_ptr<AgentChannel> agent;  ///< none: nobody asks and nobody listens
  std::string address;                  ///< of this host, towards the store
  // In this order: the groups end first, the store that they ask last.
  std::unique_ptr<StoreHost> host;
  std::shared_ptr<StoreLink> store;
  std::unique_ptr<ProcessGroup> world;
  struct SubGroup {
    std::vector<int> ranks;
    std::unique_ptr<ProcessGroup> group;
    bool refused = false;  ///< what its ranks left in the store then would be taken for what they give now
  };
  std::map<std::string, SubGroup> groups;  ///< by the name that the caller has given
  std::map<std::string, std::unique_ptr<ProcessGroup>>
      by_place;                     ///< of nodes and across them, by their keys' prefix
  std::vector<WorkerPlace> places;  ///< by rank; empty until somebody asks

  steady_clock::time_point join_deadline() const { return steady_clock::now() + options.join_timeout; }
  void connect(const Environment& environment, steady_clock::time_point deadline);
  std::unique_ptr<ProcessGroup> make_gloo(const Environment& environment, const Members& members,
                                          steady_clock::time_point deadline);
  std::unique_ptr<ProcessGroup> with_accelerator(std::unique_ptr<ProcessGroup> group, const Members& members,
                                                 steady_clock::time_point deadline);
  std::unique_ptr<ProcessGroup> make_group(const Environment& environment, const Members& members,
                                           steady_clock::time_point deadline);
  void learn_places(const Environment& environment, ProcessGroup& group);
  ProcessGroup& group_by_place(const Environment& environment, const std::string& name,
                               std::span<const int> ranks);
};

void Worker::Impl::connect(const Environment& environment, steady_clock::time_point deadline) {
  if (store) return;
  const Endpoint server{environment.master_addr, environment.master_port};
  address = local_address_towards(server.host, server.port);
  const bool hosting = !environment.agent_store && environment.rank == 0;
  if (hosting && !host) host = std::make_unique<StoreHost>(address, server.port);
  store = std::make_shared<StoreLink>(server, key_prefix(environment), until(deadline));
}

std::unique_ptr<ProcessGroup> Worker::Impl::make_gloo(const Environment& environment, const Members& members,
                                                      steady_clock::time_point deadline) {
  GlooOptions gloo;
  gloo.mesh.rank = members.rank;
  gloo.mesh.size = members.size;
  gloo.mesh.names = members.names;
  gloo.mesh.prefix = members.prefix;
  gloo.mesh.address = address;
  if (const char* name = std::getenv("GLOO_SOCKET_IFNAME")) gloo.mesh.interface_name = name;
  if (environment.debug_collectives) gloo.mesh.setting = "MUSTER_DEBUG=collectives";
  gloo.mesh.timeout = until(deadline);
  gloo.collective_timeout = options.collective_timeout;
  return make_gloo_group(gloo, store);
}

std::unique_ptr<ProcessGroup> Worker::Impl::with_accelerator(std::unique_ptr<ProcessGroup> group,
                                                             const Members& members,
                                                             steady_clock::time_point deadline) {
  if (!options.accelerator) return group;
  std::unique_ptr<ProcessGroup> device;
  if (options.device_backend == DeviceBackend::own)
    device = make_device_group(*options.accelerator, store,
                               {.prefix = members.prefix + "/device",
                                .names = members.names,
                                .rank = members.rank,
                                .size = members.size,
                                .join_timeout = until(deadline),
                                .collective_timeout = options.collective_timeout});
  return make_placed_group(std::move(group), std::move(device), *options.accelerator);
}

std::unique_ptr<ProcessGroup> Worker::Impl::make_group(const Environment& environment, const Members& members,
                                                       steady_clock::time_point deadline) {
  if (members.size == 1) return with_accelerator(make_single_group(), members, deadline);
  connect(environment, deadline);
  auto formed = with_accelerator(make_gloo(environment, members, deadline), members, deadline);
  if (environment.debug_collectives) {
    Members side = members;
    side.prefix += "/check";
    formed = make_checked_group(std::move(formed), make_gloo(environment, side, deadline), store,
                                {.prefix = side.prefix,
                                 .names = members.names,
                                 .takes = options.accelerator ? Takes::host_and_device : Takes::host,
                                 .slow_after = options.slow_rank_after,
                                 .say = print_line});
  }
  // A store in rank 0 ends with rank 0, which may have nothing more to do: not before all have read it.
  if (!environment.agent_store) formed->barrier()->wait();
  return formed;
}

void Worker::Impl::learn_places(const Environment& environment, ProcessGroup& group) {
  if (!places.empty()) return;
  std::array<std::int32_t, 2> own{environment.group_rank, environment.local_rank};
  std::vector<std::int32_t> all(own.size() * static_cast<std::size_t>(group.size()));
  group.all_gather(buffer_of(std::span<std::int32_t>(own)), buffer_of(std::span<std::int32_t>(all)))->wait();
  for (std::size_t i = 0; i < all.size(); i += own.size())
    places.push_back({.group_rank = all[i], .local_rank = all[i + 1]});
}

/// Their keys lie apart from those of groups that the caller names, whatever these are called.
ProcessGroup& Worker::Impl::group_by_place(const Environment& environment, const std::string& name,
                                           std::span<const int> ranks) {
  const auto prefix = "place/" + name;
  auto& group = by_place[prefix];
  if (!group)
    group = make_group(environment, members_of(prefix, name, ranks, environment.rank), join_deadline());
  return *group;
}

Worker::Worker(Environment environment, WorkerOptions options)
    : environment_(std::move(environment)), impl_(std::make_unique<Impl>(options)) {
  impl_->agent = AgentChannel::connect(environment_);
}

Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
Worker::~Worker() = default;

Worker Worker::join(WorkerOptions options) { return Worker(Environment::read(), options); }

ProcessGroup& Worker::process_group() {
  if (!impl_->world)
    impl_->world = impl_->make_group(
        environment_,
        {.prefix = "world", .names = {}, .rank = environment_.rank, .size = environment_.world_size},
        impl_->join_deadline());
  return *impl_->world;
}

ProcessGroup& Worker::node_group() {
  impl_->learn_places(environment_, process_group());
  const auto ranks = ranks_on_node(impl_->places, environment_.rank);
  return impl_->group_by_place(environment_, fmt::format("node {}", environment_.group_rank), ranks);
}

ProcessGroup& Worker::cross_node_group() {
  impl_->learn_places(environment_, process_group());
  const auto ranks = ranks_across_nodes(impl_->places, environment_.rank);
  return impl_->group_by_place(environment_, fmt::format("local rank {}", environment_.local_rank), ranks);
}

ProcessGroup& Worker::sub_group(const std::string& name, std::span<const int> ranks) {
  const int own = environment_.rank;
  check_members(name, ranks, own, environment_.world_size);
  auto& made = impl_->groups[name];
  if (made.group && !std::equal(ranks.begin(), ranks.end(), made.ranks.begin(), made.ranks.end()))
    throw std::invalid_argument(
        fmt::format("group {}: it was made of ranks {}, now ranks {} are asked for; expected another name",
                    name, list_text(made.ranks), list_text(ranks)));
  if (made.group) return *made.group;
  if (made.refused)
    throw std::invalid_argument(fmt::format(
        "group {}: it was refused before, since its ranks gave different lists; expected another name",
        name));
  if (ranks.size() > 1) impl_->connect(environment_, impl_->join_deadline());
  if (impl_->store) leave_members(*impl_->store, name, ranks, own);
  if (ranks.size() > 1) {
    try {
      compare_members(*impl_->store, name, ranks, own, impl_->options.join_timeout);
    } catch (const std::invalid_argument&) {
      made.refused = true;
      throw;
    }
  }
  // All have come: they have the whole time again to connect.
  made.group = impl_->make_group(environment_, members_of(connecting_prefix(name, ranks), name, ranks, own),
                                 impl_->join_deadline());
  made.ranks.assign(ranks.begin(), ranks.end());
  return *made.group;
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

int Worker::done() {
  if (impl_->agent) impl_->agent->done();
  return 0;
}

}  // namespace muster::worker
