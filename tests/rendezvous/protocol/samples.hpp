// One filled-in value of every message, so that no field can be forgotten by the codec unnoticed.
#pragma once

#include <vector>

#include "rendezvous/protocol/channel_messages.hpp"

namespace muster::rendezvous {

inline NodeOffer sample_offer() { return {"n1", "host-1", "10.0.0.1", 41877, 8, "trainer", 3, true, "5f2c"}; }

inline WorkerFailure sample_failure() {
  WorkerFailure failure{"n3",   "host-3", 5,    1,  48211,       2,  1'700'000'000'123,
                        61'000, true,     true, {}, "no memory", {}, "/logs/5"};
  failure.cause = ExitCause::signalled(9);
  failure.cause.stopped_by_muster = true;
  failure.cause.evidence = "its cgroup counted 1 OOM kill";
  failure.last_lines = {"step 911 loss 0.3127", "", "loading shard 7 \xc3\xa9"};
  return failure;
}

inline std::vector<AgentMessage> sample_agent_messages() {
  auto bare = sample_offer();
  bare.preferred_group_rank.reset();
  bare.hosts_endpoint = false;
  return {Join{.offer = sample_offer()},
          Join{bare, 7, 2, "restart 2 of 3 after rank 1 on n2 exited with code 3"},
          Resume{sample_offer(), 4, 2, 3, 16, 1, true},
          WorkerFailed{2, sample_failure(), std::chrono::milliseconds(1500)},
          WorkersSafe{2, 812},
          WorkersSafe{3, -1},
          WorkersStopped{2},
          WorkersSucceeded{7},
          Progress{7, 1'000'000'000'000},
          Leave{"SIGTERM", 15},
          Heartbeat{}};
}

inline std::vector<DaemonMessage> sample_daemon_messages() {
  Outcome failed{
      OutcomeKind::failed, "rank 5 was killed", sample_failure(), {"rank 5 (SIGKILL)", "n2 lost"}, 3};
  return {Waiting{"waiting for 1 more node"},
          Assignment{3, 1, 4, 8, 32, 8, 32, 1, 3, "fd00::1", 29500, "restart 1 of 3", Duration(12'000'000)},
          Drain{3, Duration(30'000'000'000), "node n3 joined"},
          StopWorkers{3, "drained", 2},
          StopWorkers{3, "it was ending", 2, false},
          JobEnded{Outcome{OutcomeKind::preempted, "n2 leaves (SIGINT came from outside)", {}, {}, 0, 2}},
          JobEnded{failed},
          JobEnded{Outcome{OutcomeKind::succeeded, "all workers ended with 0", {}, {}, 0}},
          Refused{RefusalCode::duplicate_node, "rank 0 claimed by A and B"},
          Inject{17, 9},
          Inject{std::nullopt, 15}};
}

inline Hello sample_hello() {
  Hello hello{PeerRole::agent, "mnist", "n1", "5f2c", {{"nnodes", "2:4"}, {"max restarts", "3"}}, {}};
  hello.nonce.fill('\x5a');
  hello.job_incarnation = 77;
  return hello;
}

}  // namespace muster::rendezvous
