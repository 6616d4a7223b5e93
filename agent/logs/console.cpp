#include "agent/logs/console.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/logs/console_fd.hpp"
#include "base/error.hpp"

namespace muster::agent {
namespace asio = boost::asio;

namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;  // small lines are joined up to this
constexpr Duration kHurriedLimit = std::chrono::milliseconds(200);
constexpr Duration kSilentWait = std::chrono::seconds(2);  // before it is said what is waited for

std::uint64_t lines_in(std::string_view text) {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

// One descriptor's queue. Kept alive by its own pending waits.
class Console::Output : public std::enable_shared_from_this<Console::Output> {
 public:
  Output(const asio::any_io_executor& executor, int fd, Limits limits)
      : limits_(limits), fd_(fd), hold_timer_(executor), ready_(executor) {
    if (fd_.ready_fd() >= 0) ready_.assign(fd_.ready_fd());
  }
  ~Output() {
    if (ready_.is_open()) ready_.release();  // fd_ owns it
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  enum class Whose { workers, ours };

  void write_lines(std::string_view lines, Whose whose) {
    if (inside_line_ && !lines.empty()) write("\n", whose);
    write(lines, whose);
  }

  void write(std::string_view lines, Whose whose) {
    if (lines.empty()) return;
    if (dead_ || !has_place(whose) || !writable_again()) {
      dropped_now_ += lines_in(lines);
      return;
    }
    if (dropping_ && dropped_now_ > 0) append_note();
    inside_line_ = lines.back() != '\n' && lines.back() != '\r';
    if (queue_.empty()) lines.remove_prefix(write_at_once(lines));
    if (lines.empty()) return;
    append(lines);
    if (!waiting_) pump();
  }

  bool full() const { return !dead_ && !dropping_ && queued_bytes_ >= limits_.max_queue_bytes; }

  void when_room(std::function<void()> resume) {
    resumes_.push_back(std::move(resume));
    if (!full()) return resume_readers();
    if (resumes_.size() > 1) return;  // the hold has begun already
    hold_timer_.expires_after(limits_.longest_hold);
    hold_timer_.async_wait([self = weak_from_this()](boost::system::error_code error) {
      const auto output = self.lock();
      if (error || !output || !output->full()) return;
      output->dropping_ = true;
      output->resume_readers();
    });
  }

  /// Writes what the console takes now. True if that was anything.
  bool flush() {
    bool some = false;
    for (;;) {
      if (queue_.empty() && dropped_now_ > 0 && writable_again() && dropped_now_ > 0) append_note();
      if (queue_.empty() || !write_front()) return some;
      some = true;
    }
  }

  bool pending() const { return !queue_.empty(); }
  int ready_fd() const { return fd_.ready_fd(); }
  void give_up() { lose_queue(); }

  /// The error that lines were lost to, and still are; 0 if none. A reader that went away (EPIPE) wanted no more.
  int failure() const { return failure_ == EPIPE || dropped_now_ == 0 ? 0 : failure_; }

  void close() {
    hold_timer_.cancel();
    if (ready_.is_open()) ready_.release();
    closed_ = true;
  }

  std::uint64_t dropped_lines() const { return dropped_before_ + dropped_now_; }

 private:
  // Readers stop when the queue is full; what still comes (last words) may double it. Ours have as much again.
  bool has_place(Whose whose) const {
    if (whose == Whose::ours) return queued_bytes_ < 3 * limits_.max_queue_bytes;
    return !dropping_ && queued_bytes_ < 2 * limits_.max_queue_bytes;
  }

  // As much as the console takes now goes there uncopied. What becomes of the rest, or of an error, is seen when
  // the rest is written.
  std::size_t write_at_once(std::string_view bytes) const {
    const ssize_t written = fd_.write_some(bytes);
    return written < 0 ? 0 : static_cast<std::size_t>(written);
  }

  void append(std::string_view lines) {
    queued_bytes_ += lines.size();
    // The front block may be half-written, so it is never added to.
    if (queue_.size() > 1 && queue_.back().size() + lines.size() <= kBlockBytes)
      queue_.back().append(lines);
    else
      queue_.emplace_back(lines);
  }

  void append_note() {
    append(fmt::format("muster: {} lines are missing here: {}\n", dropped_now_,
                       failure_ != 0 ? errno_text(failure_) : "the console did not keep up"));
    dropped_before_ += std::exchange(dropped_now_, 0);
  }

  // A disk that was full may have room by now: the note of what is missing is the first to try.
  bool writable_again() {
    if (failure_ == 0 || dead_) return !dead_;
    const auto note =
        fmt::format("muster: {} lines are missing here: {}\n", dropped_now_, errno_text(failure_));
    const ssize_t written = fd_.write_some(note);
    if (written < 0) return false;
    if (static_cast<std::size_t>(written) < note.size())
      append(note.substr(static_cast<std::size_t>(written)));
    dropped_before_ += std::exchange(dropped_now_, 0);
    failure_ = 0;
    return true;
  }

  void pump() {
    while (!queue_.empty())
      if (!write_front()) return wait();
  }

  // False when the console takes no more for now. An error ends the console, not the job; a full disk only for a while.
  bool write_front() {
    const std::string_view rest = std::string_view(queue_.front()).substr(written_of_front_);
    const ssize_t written = fd_.write_some(rest);
    if (written < 0) {
      if (errno == EINTR) return true;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      failure_ = errno;
      dead_ = failure_ != ENOSPC && failure_ != EDQUOT;
      lose_queue();
      return true;
    }
    written_of_front_ += static_cast<std::size_t>(written);
    queued_bytes_ -= static_cast<std::size_t>(written);
    if (written_of_front_ == queue_.front().size()) {
      queue_.pop_front();
      written_of_front_ = 0;
    }
    if (queued_bytes_ <= limits_.max_queue_bytes / 2) has_room();
    return true;
  }

  void has_room() {
    dropping_ = false;
    if (dropped_now_ > 0) append_note();
    resume_readers();
  }

  void resume_readers() {
    if (resumes_.empty()) return;
    for (auto& resume : std::exchange(resumes_, {}))
      asio::post(hold_timer_.get_executor(), std::move(resume));
    if (!dropping_) hold_timer_.cancel();
  }

  void wait() {
    if (closed_ || !ready_.is_open()) return die();
    waiting_ = true;
    ready_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = weak_from_this()](boost::system::error_code error) {
                        const auto output = self.lock();
                        if (error || !output || output->closed_) return;
                        output->waiting_ = false;
                        output->pump();
                      });
  }

  void die() {
    dead_ = true;
    lose_queue();
  }

  // What is queued is counted as dropped; once dead, all that follows is too.
  void lose_queue() {
    for (const std::string& block : queue_) dropped_now_ += lines_in(block);
    queue_.clear();
    queued_bytes_ = 0;
    written_of_front_ = 0;
    resume_readers();
  }

  const Limits limits_;
  ConsoleFd fd_;
  asio::steady_timer hold_timer_;
  asio::posix::stream_descriptor ready_;
  std::deque<std::string> queue_;  // at most three times limits_.max_queue_bytes, and one block of a writer
  std::size_t written_of_front_ = 0;
  std::size_t queued_bytes_ = 0;
  std::vector<std::function<void()>> resumes_;  // one for each paused worker stream
  std::uint64_t dropped_now_ = 0;               // since the last note
  std::uint64_t dropped_before_ = 0;
  int failure_ = 0;  // the errno that lines are being lost to
  bool inside_line_ = false;
  bool waiting_ = false;
  bool dropping_ = false;
  bool dead_ = false;
  bool closed_ = false;
};

Console::Console(asio::any_io_executor executor, int out_fd, int err_fd, Limits limits)
    : out_(std::make_shared<Output>(executor, out_fd, limits)),
      err_(same_file(out_fd, err_fd) ? out_ : std::make_shared<Output>(executor, err_fd, limits)) {}

Console::~Console() {
  out_->close();
  err_->close();
}

Console::Output& Console::output(Stream stream) const { return stream == Stream::out ? *out_ : *err_; }

void Console::write(Stream stream, std::string_view lines) {
  output(stream).write_lines(lines, Output::Whose::workers);
}

void Console::say(Stream stream, std::string_view lines) {
  output(stream).write_lines(lines, Output::Whose::ours);
}

void Console::write_part(Stream stream, std::string_view bytes) {
  output(stream).write(bytes, Output::Whose::workers);
}

bool Console::full(Stream stream) const { return output(stream).full(); }

void Console::when_room(Stream stream, std::function<void()> resume) {
  output(stream).when_room(std::move(resume));
}

bool Console::flush() const {
  const bool some = out_->flush();
  return (err_ != out_ && err_->flush()) || some;
}

void Console::drain(Duration limit, int hurry_fd) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  Instant read_at = now();
  std::optional<Instant> tell_at;
  if (err_ != out_) tell_at = read_at + kSilentWait;
  for (;;) {
    if (flush()) read_at = now();
    if (!out_->pending() && !err_->pending()) break;
    if (tell_at && now() >= *tell_at && !err_->pending()) {
      tell_of_wait(limit);
      tell_at.reset();
    }
    const Instant wake_at = std::min(read_at + limit, tell_at.value_or(Instant::max()));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(wake_at - now());
    pollfd waits[] = {{out_->pending() ? out_->ready_fd() : -1, POLLIN, 0},
                      {err_->pending() ? err_->ready_fd() : -1, POLLIN, 0},
                      {hurry_fd, POLLIN, 0}};
    static_cast<void>(::poll(waits, 3, static_cast<int>(std::max<std::int64_t>(0, left.count()))));
    if (waits[2].revents) {
      limit = std::min(limit, kHurriedLimit);
      hurry_fd = -1;
    }
    if (!waits[0].revents && !waits[1].revents && now() >= read_at + limit) break;
  }
  tell_of_loss();
}

void Console::tell_of_wait(Duration limit) const {
  if (out_->pending())
    err_->write_lines(
        fmt::format("muster: standard output is not read: waiting for its reader, for {} at most; a "
                    "signal ends the wait\n",
                    human(limit)),
        Output::Whose::ours);
}

void Console::tell_of_loss() const {
  const bool unread = out_->pending();
  out_->give_up();
  if (err_ == out_) return;
  if (const int failure = out_->failure(); unread || failure != 0)
    err_->write_lines(
        fmt::format("muster: {} lines could not be written to standard output: {}; log files have them, "
                    "where there are any\n",
                    out_->dropped_lines(), unread ? "nobody reads it" : errno_text(failure)),
        Output::Whose::ours);
  err_->flush();
  err_->give_up();
}

std::uint64_t Console::dropped_lines() const {
  return out_->dropped_lines() + (err_ == out_ ? 0 : err_->dropped_lines());
}

namespace {

// Lives in the io_context, so that the process's console ends with the loop that serves it.
class ProcessConsole : public asio::execution_context::service {
 public:
  using key_type = ProcessConsole;
  static inline asio::execution_context::id id;

  explicit ProcessConsole(asio::execution_context& context) : service(context) {}
  void shutdown() override { console_.reset(); }

  std::shared_ptr<Console> get(const asio::any_io_executor& executor) {
    if (!console_)
      console_ = std::make_shared<Console>(executor, STDOUT_FILENO, STDERR_FILENO, Console::Limits{});
    return console_;
  }

 private:
  std::shared_ptr<Console> console_;
};

}  // namespace

std::shared_ptr<Console> Console::of(const asio::any_io_executor& executor) {
  auto& context = asio::query(executor, asio::execution::context);
  return asio::use_service<ProcessConsole>(context).get(executor);
}

}  // namespace muster::agent
