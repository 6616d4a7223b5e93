// What of scripts/gpu-check needs no other process: every operation of the GPU beside the CPU's, training, NCCL alone, and
// how fast each is. Exit code 77: there is no GPU.
//
//   gpu_check [MODULE [--no-speed]]     with MODULE in place of the one beside it
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <span>

#include "tests/trainers/device/comparison.hpp"
#include "trainers/device/open_device.hpp"
#include "trainers/parallel/tensor_buffer.hpp"
#include "worker_sdk/src/device_group.hpp"

namespace muster::trainers::test {
namespace {

constexpr int kNoGpu = 77;
constexpr double kMeasureSeconds = 0.2;

int faults = 0;

void tell(const char* what, const std::vector<Difference>& differences) {
  fmt::print("{:<44} {}\n", what, differences.empty() ? "the same as on the CPU" : "DIFFERS");
  fmt::print("{}", text_of(differences));
  faults += static_cast<int>(differences.size());
}

void expect(const char* what, bool held) {
  fmt::print("{:<44} {}\n", what, held ? "holds" : "FAILS");
  faults += held ? 0 : 1;
}

/// Each collective in a group of this GPU alone: what comes out is what went in.
void check_nccl(Device& device) {
  const auto group =
      worker::make_device_group(*device.accelerator(), nullptr, {.prefix = "gpu-check", .names = {}});
  constexpr std::int64_t kCount = 1001;
  Tensor host({kCount});
  for (std::int64_t i = 0; i < kCount; ++i) host.data()[i] = static_cast<float>(i) / 3;
  auto values = host.clone_on(device);
  Tensor gathered({kCount}, device);
  const auto same = [&](Tensor& tensor) {
    const auto back = tensor.clone_on(cpu_device());
    return std::equal(back.values().begin(), back.values().end(), host.values().begin());
  };
  for (const auto op :
       {worker::ReduceOp::sum, worker::ReduceOp::average, worker::ReduceOp::min, worker::ReduceOp::max})
    group->all_reduce(buffer_of(values), op)->wait();
  group->broadcast(buffer_of(values), 0)->wait();
  expect("nccl, one rank: all_reduce, broadcast", same(values));
  group->all_gather(buffer_of(values), buffer_of(gathered))->wait();
  expect("nccl, one rank: all_gather", same(gathered));
  device.clear(gathered.data(), kCount * sizeof(float));
  group->reduce_scatter(buffer_of(values), buffer_of(gathered), worker::ReduceOp::average)->wait();
  expect("nccl, one rank: reduce_scatter", same(gathered));
  device.clear(gathered.data(), kCount * sizeof(float));
  const std::size_t counts[] = {kCount};
  group->all_gather_uneven(buffer_of(values), buffer_of(gathered), counts)->wait();
  expect("nccl, one rank: all_gather_uneven", same(gathered));
  // Computed and reduced without a wait between: the collective must come after.
  for (int i = 0; i < 20; ++i) device.scale(values.data(), i % 2 == 0 ? 2.0F : 0.5F, kCount);
  group->all_reduce(buffer_of(values), worker::ReduceOp::sum)->wait();
  expect("nccl, one rank: after what is computed", same(values));
}

/// Of one call, many being queued before the end is waited for.
double seconds_of(Device& device, const std::function<void()>& call) {
  float ignored = 0;
  const auto probe = device.allocate(1);
  const auto end = [&] { device.copy_out(&ignored, probe.get(), sizeof(ignored)); };
  call();
  end();
  using Clock = std::chrono::steady_clock;
  for (std::int64_t calls = 1;; calls *= 4) {
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < calls; ++i) call();
    end();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds >= kMeasureSeconds) return seconds / static_cast<double>(calls);
  }
}

using OnDevice = std::function<std::function<void()>(Device&)>;

void measure(Device& gpu, const std::string& what, double amount, const char* unit, const OnDevice& prepare) {
  const double on_cpu = amount / seconds_of(cpu_device(), prepare(cpu_device())) / 1e9;
  const double on_gpu = amount / seconds_of(gpu, prepare(gpu)) / 1e9;
  fmt::print("{:<44} {:>10.1f} {:>10.1f} {:<8} {:>7.1f}\n", what, on_cpu, on_gpu, unit, on_gpu / on_cpu);
}

std::shared_ptr<Tensor> block(Device& device, std::int64_t count) {
  return std::make_shared<Tensor>(Shape{count}, device);
}

void measure_all(Device& gpu) {
  fmt::print("\n{:<44} {:>10} {:>10} {:<8} {:>7}\n", "speed", "cpu", "cuda", "", "times");
  for (const std::int64_t n : {256, 1024, 2048}) {
    const auto flops = 2.0 * static_cast<double>(n * n * n);
    measure(gpu, fmt::format("multiply {} x {} x {}", n, n, n), flops, "GFLOP/s", [n](Device& device) {
      auto a = block(device, n * n), b = block(device, n * n), out = block(device, n * n);
      return [=, &device] {
        device.multiply({Factor::as_it_lies, Factor::transposed, n, n, n}, a->data(), b->data(), out->data(),
                        Into::overwrite);
      };
    });
  }
  constexpr std::int64_t kNumbers = 4'000'000;
  constexpr double kBytes = kNumbers * 4.0;
  measure(gpu, "relu, 4 million", 2 * kBytes, "GB/s", [](Device& device) {
    auto values = block(device, kNumbers);
    return [=, &device] { device.relu(values->data(), kNumbers); };
  });
  measure(gpu, "adam, 4 million", 7 * kBytes, "GB/s", [](Device& device) {
    auto gradient = block(device, kNumbers), value = block(device, kNumbers), m = block(device, kNumbers),
         v = block(device, kNumbers);
    return [=, &device] {
      device.adam({0.9F, 0.1F, 0.999F, 0.001F, 0.001F, 1, 1e-8F, 0, 1}, gradient->data(), value->data(),
                  m->data(), v->data(), kNumbers);
    };
  });
  measure(gpu, "sum of squares, 4 million", kBytes, "GB/s", [](Device& device) {
    auto values = block(device, kNumbers);
    return [=, &device] { static_cast<void>(device.sum_of_squares(values->data(), kNumbers)); };
  });
  measure(gpu, "fp32 to bf16, 4 million", 1.5 * kBytes, "GB/s", [](Device& device) {
    auto values = block(device, kNumbers), half = block(device, kNumbers / 2);
    return [=, &device] {
      device.narrow(reinterpret_cast<std::uint16_t*>(half->data()), values->data(), kNumbers);
    };
  });
  measure(gpu, "cross entropy (4096, 10)", 4096 * 10 * 8.0, "GB/s", [](Device& device) {
    auto logits = block(device, 40960), gradient = block(device, 40960);
    auto labels = std::make_shared<std::vector<std::uint8_t>>(4096);
    return [=, &device] {
      static_cast<void>(device.cross_entropy(logits->data(), labels->data(), 4096, 10, gradient->data()));
    };
  });
  measure(gpu, "copied in, 16 MB", kBytes, "GB/s", [](Device& device) {
    auto values = block(device, kNumbers), host = block(cpu_device(), kNumbers);
    return [=, &device] { device.copy_in(values->data(), host->data(), kNumbers * sizeof(float)); };
  });
}

int run(std::span<const char* const> arguments) {
  Device* device = nullptr;
  try {
    device = arguments.size() > 1 ? &open_module(arguments[1], 0) : &open_device("cuda", 0);
  } catch (const std::invalid_argument& why) {
    fmt::print("gpu_check: nothing was checked: {}\n", why.what());
    return kNoGpu;
  }
  fmt::print("gpu_check: {}\n", device->name());
  tell("every operation, on odd shapes", compare_operations(*device));
  tell("20 steps of SGD, Adam and AdamW", compare_training(*device));
  check_nccl(*device);
  if (arguments.size() < 3) measure_all(*device);
  fmt::print("\ngpu_check: {}\n", faults == 0 ? "all holds" : fmt::format("{} faults, see above", faults));
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainers::test

int main(int argc, char** argv) {
  try {
    return muster::trainers::test::run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "gpu_check: {}\n", error.what());
    return 1;
  }
}
