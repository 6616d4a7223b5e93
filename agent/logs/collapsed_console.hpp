// The console behind LineCollapse: the workers of one round write their lines here instead.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "agent/logs/console.hpp"
#include "agent/logs/line_collapse.hpp"
#include "agent/logs/line_prefix.hpp"

namespace muster::agent {

/// Used from the executor's thread. What still waits when this is destroyed is written then.
class CollapsedConsole {
 public:
  struct Options {
    Duration window = std::chrono::milliseconds(200);
    std::set<int> shown_out;  ///< local ranks that write lines here, by stream
    std::set<int> shown_err;
    /// What stands before a line of these local ranks.
    std::function<LinePrefix(Console::Stream stream, const std::set<int>& local_ranks)> prefix_of;
  };

  CollapsedConsole(const boost::asio::any_io_executor& executor, std::shared_ptr<Console> console,
                   Options options);
  ~CollapsedConsole();
  CollapsedConsole(const CollapsedConsole&) = delete;
  CollapsedConsole& operator=(const CollapsedConsole&) = delete;

  /// `line`: with its end, if it has one.
  void add(Console::Stream stream, int local_rank, std::string_view line);
  /// After a few lines were added: what need not wait is written.
  void flush(Console::Stream stream);
  void ended(Console::Stream stream, int local_rank);

 private:
  struct Side;

  void write(Side& side, Instant now);
  void arm(Side& side);
  Side& side(Console::Stream stream) const;

  std::shared_ptr<Console> console_;
  Options options_;
  std::shared_ptr<Side> out_;
  std::shared_ptr<Side> err_;
};

}  // namespace muster::agent
