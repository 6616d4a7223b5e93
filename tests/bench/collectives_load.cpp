// One rank that makes the same collectives by turns through muster's group and through Gloo's own functions on a second set
// of connections, in the same process; the program of `scripts/bench collectives`. Rank 0 prints one line of JSON.
#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>

#include "muster/worker/worker.hpp"

namespace muster::worker {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string folder;  ///< where Gloo's ranks find each other: empty at the start
  std::vector<std::size_t> elements;
  int rounds = 15;
  double block_s = 0.02;  ///< about as long as each turn lasts
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::shared_ptr<gloo::Context> connect_gloo(const Options& options, int rank, int size) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(options.folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  return context;
}

/// One collective of one size, in both ways. Both work on the same memory.
struct Pair {
  std::string name;
  std::size_t bytes;  ///< of the whole tensor
  std::function<void()> own;
  std::function<void()> raw;
};

class Collectives {
 public:
  Collectives(ProcessGroup& group, std::shared_ptr<gloo::Context> raw, std::size_t most_elements)
      : group_(group), raw_(std::move(raw)), whole_(most_elements), part_(most_elements) {}

  std::vector<Pair> with(std::size_t elements) {
    const std::span whole(whole_.data(), elements);
    const std::span part(part_.data(), elements / static_cast<std::size_t>(group_.size()));
    return {all_reduce(whole), reduce_scatter(whole, part), all_gather(whole, part), broadcast(whole)};
  }

  Pair barrier() {
    return {"barrier", 0, [this] { group_.barrier()->wait(); },
            [this] {
              gloo::BarrierOptions options(raw_);
              gloo::barrier(options);
            }};
  }

 private:
  Pair all_reduce(std::span<float> whole) {
    return {"all_reduce", whole.size_bytes(),
            [=, this] { group_.all_reduce(buffer_of(whole), ReduceOp::sum)->wait(); },
            [=, this] {
              gloo::AllreduceOptions options(raw_);
              options.setOutput(whole.data(), whole.size());
              options.setReduceFunction(
                  static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
              gloo::allreduce(options);
            }};
  }

  Pair reduce_scatter(std::span<float> whole, std::span<float> part) {
    const std::vector<int> counts(static_cast<std::size_t>(group_.size()), static_cast<int>(part.size()));
    // Gloo's works in place; it is made once, as its users would.
    const auto raw = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
        raw_, std::vector<float*>{whole.data()}, static_cast<int>(whole.size()), counts);
    return {"reduce_scatter", whole.size_bytes(),
            [=, this] { group_.reduce_scatter(buffer_of(whole), buffer_of(part), ReduceOp::sum)->wait(); },
            [raw] { raw->run(); }};
  }

  Pair all_gather(std::span<float> whole, std::span<float> part) {
    return {"all_gather", whole.size_bytes(),
            [=, this] { group_.all_gather(buffer_of(part), buffer_of(whole))->wait(); },
            [=, this] {
              gloo::AllgatherOptions options(raw_);
              options.setInput(part.data(), part.size());
              options.setOutput(whole.data(), whole.size());
              gloo::allgather(options);
            }};
  }

  Pair broadcast(std::span<float> whole) {
    return {"broadcast", whole.size_bytes(), [=, this] { group_.broadcast(buffer_of(whole), 0)->wait(); },
            [=, this] {
              gloo::BroadcastOptions options(raw_);
              options.setRoot(0);
              options.setOutput(whole.data(), whole.size());
              gloo::broadcast(options);
            }};
  }

  ProcessGroup& group_;
  std::shared_ptr<gloo::Context> raw_;
  std::vector<float> whole_;
  std::vector<float> part_;
};

double seconds_of(const std::function<void()>& call, std::int64_t times, ProcessGroup& group) {
  group.barrier()->wait();
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < times; ++i) call();
  // A broadcast's root is done before the others are.
  group.barrier()->wait();
  return seconds_since(start) / static_cast<double>(times);
}

/// How many calls fill a turn, as rank 0 finds it.
std::int64_t calls_of_a_turn(const Pair& pair, const Options& options, ProcessGroup& group) {
  double slowest = 0;
  for (const auto* call : {&pair.own, &pair.raw}) {
    seconds_of(*call, 1, group);
    slowest = std::max(slowest, seconds_of(*call, 3, group));
  }
  std::int64_t calls = std::max<std::int64_t>(1, static_cast<std::int64_t>(options.block_s / slowest));
  group.broadcast(buffer_of(std::span(&calls, 1)), 0)->wait();
  return calls;
}

/// {"name": ..., "bytes": ..., "own_s": [...], "raw_s": [...]}: seconds a call in each round.
std::string measured(const Pair& pair, const Options& options, ProcessGroup& group) {
  const auto calls = calls_of_a_turn(pair, options, group);
  std::string own;
  std::string raw;
  for (int round = 0; round < options.rounds; ++round) {
    const char* comma = round == 0 ? "" : ",";
    const auto take = [&](std::string& into, const std::function<void()>& call) {
      into += fmt::format("{}{:.9f}", comma, seconds_of(call, calls, group));
    };
    if (round % 2 == 0) {
      take(own, pair.own);
      take(raw, pair.raw);
    } else {
      take(raw, pair.raw);
      take(own, pair.own);
    }
  }
  return fmt::format(R"({{"name":"{}","bytes":{},"own_s":[{}],"raw_s":[{}]}})", pair.name, pair.bytes, own,
                     raw);
}

int body(int argc, char** argv) {
  Options options;
  CLI::App app("collectives through muster's group and through Gloo itself, by turns");
  app.add_option("--folder", options.folder)->required();
  app.add_option("--elements", options.elements)->required();
  app.add_option("--rounds", options.rounds);
  app.add_option("--block-seconds", options.block_s);
  CLI11_PARSE(app, argc, argv);

  auto worker = Worker::join();
  auto& group = worker.process_group();
  if (group.size() < 2) throw std::invalid_argument("WORLD_SIZE: a collective needs two ranks");
  const auto raw = connect_gloo(options, group.rank(), group.size());
  Collectives collectives(group, raw, *std::max_element(options.elements.begin(), options.elements.end()));
  std::string list = measured(collectives.barrier(), options, group);
  for (const auto elements : options.elements)
    for (const auto& pair : collectives.with(elements)) list += "," + measured(pair, options, group);
  if (worker.is_rank_zero()) fmt::print("[{}]\n", list);
  return worker.done();
}

}  // namespace
}  // namespace muster::worker

int main(int argc, char** argv) { return muster::worker::run_main(muster::worker::body, argc, argv); }
