// How much a launcher adds to starting N workers, beside a bare loop that forks and execs the same N
// programs, all in one run. Three figures each: time to the last worker's main, whole-command wall time, the
// launcher's peak resident memory.
//
//   launch_bench [--workers N] [--runs N] [--torchrun PYTHON]
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "fmt/format.h"

namespace {

namespace fs = std::filesystem;

double now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

pid_t start(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere < 0 || dup2(nowhere, 1) < 0 || dup2(nowhere, 2) < 0) _exit(126);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  return pid;
}

void wait_for(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::cerr << "launch_bench: a command failed, wait status " << status << "\n";
    std::exit(1);
  }
}

struct Sample {
  double last_main_ms = 0;
  double wall_ms = 0;
  double peak_mib = 0;
};

class Bench {
 public:
  Bench(int workers, fs::path folder) : workers_(workers), folder_(std::move(folder)) {
    setenv("STAMP_DIR", folder_.c_str(), 1);
    setenv("OMP_NUM_THREADS", "1", 1);
  }

  Sample bare_loop(const std::string& child) {
    const double began = now_ms();
    std::vector<pid_t> pids;
    for (int rank = 0; rank < workers_; ++rank) {
      setenv("RANK", std::to_string(rank).c_str(), 1);
      pids.push_back(start({child}));
    }
    for (const pid_t pid : pids) wait_for(pid);
    unsetenv("RANK");
    return read(began, now_ms());
  }

  Sample command(const std::vector<std::string>& words) {
    const double began = now_ms();
    wait_for(start(words));
    return read(began, now_ms());
  }

 private:
  Sample read(double began, double ended) {
    Sample sample{0, ended - began, 0};
    for (int rank = 0; rank < workers_; ++rank) {
      const auto path = folder_ / std::to_string(rank);
      long long main_ns = 0;
      long peak_kib = 0;
      std::ifstream(path) >> main_ns >> peak_kib;
      if (main_ns == 0) {
        std::cerr << "launch_bench: rank " << rank << " left no stamp\n";
        std::exit(1);
      }
      sample.last_main_ms = std::max(sample.last_main_ms, static_cast<double>(main_ns) / 1e6 - began);
      sample.peak_mib = std::max(sample.peak_mib, static_cast<double>(peak_kib) / 1024);
      fs::remove(path);
    }
    return sample;
  }

  int workers_;
  fs::path folder_;
};

double median(std::vector<Sample> samples, double Sample::*figure) {
  std::sort(samples.begin(), samples.end(),
            [&](const auto& a, const auto& b) { return a.*figure < b.*figure; });
  return samples[samples.size() / 2].*figure;
}

void print_row(const std::string& name, const std::vector<Sample>& samples, const std::vector<Sample>& base) {
  const double last = median(samples, &Sample::last_main_ms);
  const double wall = median(samples, &Sample::wall_ms);
  const double base_last = median(base, &Sample::last_main_ms);
  const double base_wall = median(base, &Sample::wall_ms);
  std::cout << fmt::format("{:<12} {:>9.1f} ms {:>+9.1f} ms {:>7.2f}x {:>10.1f} ms {:>7.2f}x {:>8.1f} MiB\n",
                           name, last, last - base_last, last / base_last, wall, wall / base_wall,
                           median(samples, &Sample::peak_mib));
}

}  // namespace

int main(int argc, char** argv) {
  int workers = 8;
  int runs = 21;
  std::string torch_python;
  CLI::App app{"Start-up cost of muster beside a bare fork-exec loop"};
  app.add_option("--workers", workers)->check(CLI::Range(1, 256));
  app.add_option("--runs", runs)->check(CLI::Range(1, 1000));
  app.add_option("--torchrun", torch_python, "also torchrun of this interpreter's PyTorch (slow)");
  CLI11_PARSE(app, argc, argv);

  const auto folder = fs::temp_directory_path() / fmt::format("muster-launch-bench-{}", getpid());
  fs::create_directories(folder / "stamps");
  Bench bench(workers, folder / "stamps");
  const std::string bin = MUSTER_BIN_DIR;
  const std::string child = bin + "/stamp_child";
  const std::vector<std::string> muster{bin + "/muster",
                                        "--standalone",
                                        fmt::format("--nproc-per-node={}", workers),
                                        "--log-dir",
                                        (folder / "logs").string(),
                                        child};
  const std::vector<std::string> torchrun{torch_python,
                                          "-m",
                                          "torch.distributed.run",
                                          "--standalone",
                                          fmt::format("--nproc_per_node={}", workers),
                                          "--no_python",
                                          "-r",
                                          "1",
                                          "-t",
                                          "1",
                                          "--log_dir",
                                          (folder / "torch").string(),
                                          child};

  std::vector<Sample> bare, ours, theirs;
  for (int run = -1; run < runs; ++run) {  // run -1 warms up
    const auto a = bench.bare_loop(child);
    const auto b = bench.command(muster);
    if (run >= 0) {
      bare.push_back(a);
      ours.push_back(b);
    }
    if (!torch_python.empty() && run >= 0 && run < 3) theirs.push_back(bench.command(torchrun));
  }
  std::cout << fmt::format("{} workers, median of {} runs (torchrun: {})\n", workers, runs, theirs.size());
  std::cout << fmt::format("{:<12} {:>12} {:>12} {:>8} {:>13} {:>8} {:>12}\n", "", "last main", "added",
                           "ratio", "wall", "ratio", "peak memory");
  print_row("fork+exec", bare, bare);
  print_row("muster", ours, bare);
  if (!theirs.empty()) print_row("torchrun", theirs, bare);
  fs::remove_all(folder);
  return 0;
}
