// One connection to a store server, one request at a time.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "rendezvous/store/handshake.hpp"

namespace muster::rendezvous {

struct StoreAnswer {
  std::int64_t number = 0;
  std::vector<std::string> values;
};

/// Safe from several threads; a call holds the connection until it is done. A connection that was lost, or
/// left out of step, is made anew by the next call.
class StoreChannel {
 public:
  /// Connects. Throws StoreTimeout.
  StoreChannel(Endpoint server, StoreClientOptions options);

  /// Throws StoreError, or StoreTimeout if no reply came.
  StoreAnswer call(const StoreRequest& request, const StoreDeadline& deadline);

  /// WAIT or BARRIER. False: the deadline passed first, and the server has been told.
  bool wait(const StoreRequest& request, const StoreDeadline& deadline);

  StoreDialect dialect();
  bool has_ping();
  const Endpoint& server() const { return server_; }
  const StoreClientOptions& options() const { return options_; }

 private:
  void ensure_connected(const StoreDeadline& deadline);
  void send(const StoreRequest& request, const StoreDeadline& deadline);
  bool receive(const StoreRequest& request, std::chrono::steady_clock::time_point deadline);
  bool cancel(const StoreRequest& waited_for);
  StoreDialect spoken() const;
  [[noreturn]] void fail(StoreOp op, const std::string& why);

  const Endpoint server_;
  const StoreClientOptions options_;
  std::mutex mutex_;
  StoreSocket socket_;
  StoreGreeting greeting_ = StoreGreeting::none;
  std::string output_;
  std::string input_;
  std::size_t used_ = 0;  ///< bytes of `input_` that `reply_` was read from
  StoreReply reply_;      ///< points into `input_`
};

}  // namespace muster::rendezvous
