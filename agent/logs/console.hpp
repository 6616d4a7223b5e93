// The launcher's own stdout and stderr, shared by all workers' lines and by our own.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/time.hpp"

namespace muster::agent {

/// Writes blocks of whole lines, in order, without ever blocking the agent. Where stdout and stderr are the
/// same file they share one queue, so that a line of one never cuts into a line of the other.
///
/// A console that does not keep up (a stopped terminal, a pipe that nobody reads) fills the queue of
/// `max_queue_bytes`. Then the workers' output is held back, `longest_hold` at most, so that a slow but
/// living reader misses nothing; after that, lines are dropped whole until half of the queue is free again,
/// and one line says how many. Our own lines are few and are kept all the same. A full disk under stdout is treated alike: lines are dropped, tried again and
/// counted. At the end, when no worker can be held any more, drain() waits much longer; what stdout loses even then,
/// stderr tells. So training is never held for longer than `longest_hold` in one go. The log files have everything in
/// any case.
///
/// How writing does not block: O_NONBLOCK belongs to the open file description, which the terminal's shell
/// and other jobs share, so it must not be set on descriptors 1 and 2. Pipes and terminals are opened a
/// second time through /proc/self/fd, which gives a description of our own; sockets have MSG_DONTWAIT; what
/// cannot be opened again is polled before each write of at most a pipe's atomic size; files do not block.
///
/// SIGPIPE must be ignored in the process. Used from one thread, the executor's.
class Console {
 public:
  enum class Stream { out, err };

  struct Limits {
    std::size_t max_queue_bytes = 1 * 1024 * 1024;
    Duration longest_hold = std::chrono::seconds(1);
  };

  /// The descriptors stay the caller's and must outlive this.
  Console(boost::asio::any_io_executor executor, int out_fd, int err_fd, Limits limits);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// The one of this process (descriptors 1 and 2), one for each io_context.
  static std::shared_ptr<Console> of(const boost::asio::any_io_executor& executor);

  /// `lines`: whole lines, each with its end. They begin on a line of their own.
  void write(Stream stream, std::string_view lines);
  /// Our own lines: also while workers' lines are dropped.
  void say(Stream stream, std::string_view lines);
  /// Any bytes, which go on where the last ones ended: for a worker that has the console to itself.
  void write_part(Stream stream, std::string_view bytes);

  /// True while readers of worker pipes should pause; they then ask when_room() to be called back.
  bool full(Stream stream) const;
  /// `resume` is called once, later, when there is room or the longest hold is over.
  void when_room(Stream stream, std::function<void()> resume);

  /// For the end of the program: blocks until all is written, or nothing was read for `limit`; where stderr is another
  /// console, it hears of what stdout waits for and loses. Once `hurry_fd` can be read, the limit is a fifth of a second.
  void drain(Duration limit, int hurry_fd = -1);

  std::uint64_t dropped_lines() const;

 private:
  class Output;
  Output& output(Stream stream) const;
  bool flush() const;
  void tell_of_wait(Duration limit) const;
  void tell_of_loss() const;

  std::shared_ptr<Output> out_;
  std::shared_ptr<Output> err_;
};

}  // namespace muster::agent
