// One rank of a test job. What it does comes as the first argument:
//   sum       forms the group, adds up over all ranks, prints "sum <value>"
//   leave     forms the group and ends
//   loop      all-reduces 4 MiB again and again, after the first prints "looping"
//   absent    as "sum", but rank 1 forms the group and then calls nothing
//   groups    prints the sum of the ranks on its node, and of those across nodes
//   mismatch  rank 0 calls a barrier, the others an all-reduce
//   throw     throws a std::runtime_error
//   lines     throws a std::runtime_error of two lines
//   number    throws an int
//   refuse    throws a std::invalid_argument
//   early     as "group", with a second to join
//   again     as "group", and once more after a std::invalid_argument, which it prints
//   group     makes a sub-group for each further argument, "NAME=RANK,RANK,...", and prints the sum of its ranks
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "muster/worker/worker.hpp"

namespace {

using namespace std::chrono_literals;
using muster::worker::buffer_of;
using muster::worker::ReduceOp;
using muster::worker::Worker;

void say(const char* text, double value = 0) {
  std::printf("%s %g\n", text, value);
  std::fflush(stdout);
}

void sum(Worker& worker) {
  auto& group = worker.process_group();
  std::vector<double> values(1000, worker.environment().rank + 1);
  group.all_reduce(buffer_of(std::span(values)), ReduceOp::sum)->wait();
  say("sum", values.back());
}

double sum_of_ranks(Worker& worker, muster::worker::ProcessGroup& group) {
  std::vector<double> value(1, worker.environment().rank);
  group.all_reduce(buffer_of(std::span(value)), ReduceOp::sum)->wait();
  return value[0];
}

void groups(Worker& worker) {
  say("node", sum_of_ranks(worker, worker.node_group()));
  say("across", sum_of_ranks(worker, worker.cross_node_group()));
}

void sub_groups(Worker& worker, int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    std::istringstream text(argv[i]);
    std::string name;
    std::string number;
    std::getline(text, name, '=');
    std::vector<int> ranks;
    while (std::getline(text, number, ',')) ranks.push_back(std::stoi(number));
    say(name.c_str(), sum_of_ranks(worker, worker.sub_group(name, ranks)));
  }
}

void sub_groups_again(Worker& worker, int argc, char** argv) {
  try {
    sub_groups(worker, argc, argv);
  } catch (const std::invalid_argument& error) {
    std::puts(error.what());
    std::fflush(stdout);
  }
  sub_groups(worker, argc, argv);
}

void mismatch(Worker& worker) {
  if (worker.is_rank_zero()) worker.process_group().barrier()->wait();
  sum(worker);
}

void loop(Worker& worker) {
  auto& group = worker.process_group();
  std::vector<float> values(1 << 20);
  for (bool first = true;; first = false) {
    group.all_reduce(buffer_of(std::span(values)), ReduceOp::max)->wait();
    if (first) say("looping");
  }
}

int body(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  auto worker = Worker::join(
      {.join_timeout = mode == "early" ? 1s : 120s, .collective_timeout = mode == "absent" ? 1s : 300s});
  if (mode == "sum") sum(worker);
  if (mode == "leave") worker.process_group();
  if (mode == "loop") loop(worker);
  if (mode == "groups") groups(worker);
  if (mode == "mismatch") mismatch(worker);
  if (mode == "throw") throw std::runtime_error("the disk: on fire");
  if (mode == "lines") throw std::runtime_error("the disk:\r\n  on fire\n");
  if (mode == "number") throw 5;
  if (mode == "group" || mode == "early") sub_groups(worker, argc, argv);
  if (mode == "again") sub_groups_again(worker, argc, argv);
  if (mode == "refuse") throw std::invalid_argument("--epochs -1: at least 0 is needed");
  if (mode == "absent") {
    worker.process_group();
    if (!worker.is_rank_zero()) ::pause();
    sum(worker);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return muster::worker::run_main(body, argc, argv); }
