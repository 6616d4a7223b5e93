// A failed job of three workers, for the tests of its renderings.
#pragma once

#include <csignal>

#include "agent/report/report.hpp"

namespace muster::agent {

inline rendezvous::WorkerFailure sample_failure(ExitCause cause) {
  rendezvous::WorkerFailure failure;
  failure.node = "n3";
  failure.host = "n3";
  failure.rank = 1;
  failure.local_rank = 1;
  failure.pid = 48211;
  failure.round = 2;
  failure.unix_time_ms = 1'700'000'000'482;
  failure.lived_ms = 2500;
  failure.cause = std::move(cause);
  failure.last_lines = {"step 911 loss 0.3127", "loading shard 7"};
  failure.log_path = "/logs/mnist/round-2/rank-1/stderr.log";
  return failure;
}

inline JobReport sample_failed_job(ExitCause cause = ExitCause::exited(3)) {
  JobReport report;
  report.run_id = "mnist";
  report.node = "n3";
  report.outcome.kind = rendezvous::OutcomeKind::failed;
  report.outcome.first_failure = sample_failure(cause);
  report.outcome.restarts = {"rank 1 (exit 3)"};
  report.outcome.max_restarts = 1;
  report.status_path = "/logs/mnist/status.json";
  report.log_folder = "/logs/mnist";
  ExitCause stopped = ExitCause::signalled(SIGTERM);
  stopped.stopped_by_muster = true;
  report.workers.push_back({1, 1, 48000, 1, ExitCause::exited(3), 1'699'999'990'000, 1'699'999'991'000, ""});
  report.workers.push_back({0, 0, 48210, 2, stopped, 1'699'999'998'000, 1'700'000'000'600, ""});
  report.workers.push_back({1, 1, 48211, 2, cause, 1'699'999'998'000, 1'700'000'000'482, ""});
  report.workers.push_back({2, 2, 48212, 2, stopped, 1'699'999'998'000, 1'700'000'000'682, ""});
  return report;
}

}  // namespace muster::agent
