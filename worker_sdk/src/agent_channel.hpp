// The worker's end of the channel to its node's agent (grammar: base/worker_lines.hpp). No thread: what the agent said is
// read when somebody asks.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/unique_fd.hpp"
#include "base/worker_lines.hpp"
#include "muster/worker/environment.hpp"

namespace muster::worker {

/// Not thread-safe. A channel that breaks stays silent: the worker goes on with signals only.
class AgentChannel {
 public:
  /// Nothing where MUSTER_CHANNEL is not set (another launcher) or nobody listens there (a container of its own); the
  /// latter is said once on stderr.
  static std::unique_ptr<AgentChannel> connect(const Environment& environment);

  /// Says hello. `fd`: a connected stream socket.
  AgentChannel(UniqueFd fd, const Environment& environment);

  /// Sent 10 times a second at most, and dropped rather than waited for.
  void progress(std::int64_t step);

  /// Waits up to 1 s until the agent's socket takes it.
  void safe(std::int64_t step);
  void done();

  bool asked_to_save();

 private:
  void send(const std::string& text, std::chrono::milliseconds patience);

  UniqueFd fd_;
  WorkerLineReader reader_;
  bool asked_to_save_ = false;
  std::chrono::steady_clock::time_point progress_sent_at_{};
};

}  // namespace muster::worker
