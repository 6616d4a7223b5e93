#include "agent/logs/worker_log.hpp"

#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <utility>

#include "agent/logs/console.hpp"
#include "agent/logs/output_ends.hpp"
#include "agent/logs/worker_stream.hpp"
#include "base/unique_fd.hpp"

namespace muster::agent {
namespace asio = boost::asio;

namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr int kReadsInOneGo = 16;                    // then the other streams get their turn
constexpr std::size_t kLastReadBytes = 1024 * 1024;  // from a pipe that somebody else goes on filling

}  // namespace

struct WorkerLog::Impl : std::enable_shared_from_this<WorkerLog::Impl> {
  struct Reading {
    Reading(const asio::any_io_executor& executor, WorkerStream taker)
        : reader(executor), stream(std::move(taker)) {}

    asio::posix::stream_descriptor reader;
    UniqueFd child_end;
    std::shared_ptr<LogFile> file;
    WorkerStream stream;
    bool ended = false;
  };

  Impl(asio::any_io_executor io, WorkerLogOptions given)
      : executor(std::move(io)),
        options(std::move(given)),
        last_lines(options.keep_lines),
        out(executor, {{options, console}, Console::Stream::out, options.out, nullptr}),
        err(executor, {{options, console}, Console::Stream::err, options.err, &last_lines}),
        limit_timer(executor) {}

  Result<void> open();
  Result<void> open_ends(Reading& reading) const;
  Result<void> open_files();
  std::shared_ptr<LogFile> file_of(const StreamRoute& route);
  void read_when_ready(Reading& reading);
  void read(Reading& reading);
  void pause(Reading& reading);
  bool read_once(Reading& reading);
  void end(Reading& reading);
  void read_the_rest(Reading& reading);
  void finish(Duration limit, std::function<void()> when_done);
  void done_if_ended();

  asio::any_io_executor executor;
  WorkerLogOptions options;
  std::function<Console&()> console = [this]() -> Console& {
    if (!options.console) options.console = Console::of(executor);
    return *options.console;
  };
  LastLines last_lines;
  Reading out;
  Reading err;
  asio::steady_timer limit_timer;
  Instant last_output = std::chrono::steady_clock::now();
  std::function<void()> done;
};

Result<void> WorkerLog::Impl::open() {
  for (Reading* reading : {&out, &err})
    if (auto opened = open_ends(*reading); !opened) return opened;
  return open_files();
}

Result<void> WorkerLog::Impl::open_ends(Reading& reading) const {
  auto ends = options.terminal ? make_terminal() : make_pipe();
  if (!ends) return ends.error();
  reading.reader.assign(ends->reader.release());
  reading.child_end = std::move(ends->worker);
  return {};
}

Result<void> WorkerLog::Impl::open_files() {
  const bool shared = options.out.file == options.err.file;
  out.file = file_of(options.out);
  err.file = shared ? out.file : file_of(options.err);
  for (Reading* reading : {&out, &err}) {
    if (!reading->file) continue;
    if (reading == &out || !shared)
      if (auto opened = reading->file->open(); !opened) return opened;
    reading->stream.write_to(reading->file, shared);
  }
  return {};
}

std::shared_ptr<LogFile> WorkerLog::Impl::file_of(const StreamRoute& route) {
  if (route.file.empty()) return nullptr;
  return std::make_shared<LogFile>(route.file, [this](const std::string& sentence) {
    console().write(Console::Stream::err, "muster: " + sentence + "\n");
  });
}

void WorkerLog::Impl::read_when_ready(Reading& reading) {
  reading.reader.async_wait(asio::posix::stream_descriptor::wait_read,
                            [weak = weak_from_this(), &reading](boost::system::error_code error) {
                              const auto self = weak.lock();
                              if (!error && self && !reading.ended) self->read(reading);
                            });
}

void WorkerLog::Impl::read(Reading& reading) {
  for (int count = 0; count < kReadsInOneGo; ++count) {
    if (reading.stream.console_is_full()) return pause(reading);
    if (!read_once(reading)) break;
  }
  if (!reading.ended) read_when_ready(reading);
}

void WorkerLog::Impl::pause(Reading& reading) {
  console().when_room(reading.stream.console_stream(), [weak = weak_from_this(), &reading] {
    const auto self = weak.lock();
    if (self && !reading.ended) self->read_when_ready(reading);
  });
}

// False when there is nothing (more) to read for now; the stream has ended if nothing will come any more.
bool WorkerLog::Impl::read_once(Reading& reading) {
  char buffer[kReadBytes];
  const ssize_t size = ::read(reading.reader.native_handle(), buffer, sizeof buffer);
  if (size > 0) {
    last_output = std::chrono::steady_clock::now();
    reading.stream.take({buffer, static_cast<std::size_t>(size)});
    return true;
  }
  if (size < 0 && errno == EINTR) return true;
  if (size < 0 && errno == EAGAIN) return false;
  end(reading);
  return false;
}

void WorkerLog::Impl::end(Reading& reading) {
  if (reading.ended) return;
  reading.ended = true;
  reading.stream.end();
  boost::system::error_code ignored;  // the reading end: nothing can be lost here
  reading.reader.close(ignored);
  const bool other_writes_on = out.file == err.file && !(out.ended && err.ended);
  if (reading.file && !other_writes_on) reading.file->close();
  done_if_ended();
}

// Somebody else holds the pipe: take what the worker has left in it.
void WorkerLog::Impl::read_the_rest(Reading& reading) {
  for (std::size_t taken = 0; taken < kLastReadBytes && !reading.ended; taken += kReadBytes)
    if (!read_once(reading)) break;
  end(reading);
}

void WorkerLog::Impl::finish(Duration limit, std::function<void()> when_done) {
  done = std::move(when_done);
  limit_timer.expires_after(limit);
  limit_timer.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->read_the_rest(self->out);
    self->read_the_rest(self->err);
  });
  done_if_ended();
}

void WorkerLog::Impl::done_if_ended() {
  if (!out.ended || !err.ended || !done) return;
  limit_timer.cancel();
  asio::post(executor, std::exchange(done, nullptr));
}

WorkerLog::WorkerLog(asio::any_io_executor executor, WorkerLogOptions options)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(options))) {}
WorkerLog::~WorkerLog() = default;
WorkerLog::WorkerLog(WorkerLog&&) noexcept = default;
WorkerLog& WorkerLog::operator=(WorkerLog&&) noexcept = default;

Result<void> WorkerLog::open() { return impl_->open(); }
int WorkerLog::child_stdout_fd() const { return impl_->out.child_end.get(); }
int WorkerLog::child_stderr_fd() const { return impl_->err.child_end.get(); }

void WorkerLog::started() {
  for (Impl::Reading* reading : {&impl_->out, &impl_->err}) {
    reading->child_end.reset();
    impl_->read_when_ready(*reading);
  }
}

void WorkerLog::finish(Duration limit, std::function<void()> done) { impl_->finish(limit, std::move(done)); }

std::vector<std::string> WorkerLog::last_stderr_lines() const { return impl_->last_lines.lines(); }
const std::filesystem::path& WorkerLog::stdout_path() const { return impl_->options.out.file; }
const std::filesystem::path& WorkerLog::stderr_path() const { return impl_->options.err.file; }
std::uint64_t WorkerLog::dropped_bytes() const {
  const auto lost = [](const std::shared_ptr<LogFile>& file) { return file ? file->lost_bytes() : 0; };
  return lost(impl_->out.file) + (impl_->err.file == impl_->out.file ? 0 : lost(impl_->err.file));
}
Instant WorkerLog::last_output() const { return impl_->last_output; }

}  // namespace muster::agent
