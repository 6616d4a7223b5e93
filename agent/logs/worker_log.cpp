#include "agent/logs/worker_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <utility>

#include "agent/logs/console.hpp"
#include "agent/logs/last_lines.hpp"
#include "agent/logs/lines.hpp"
#include "base/unique_fd.hpp"

namespace muster::agent {
namespace asio = boost::asio;

namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr int kReadsInOneGo = 16;                    // then the other streams get their turn
constexpr std::size_t kLastReadBytes = 1024 * 1024;  // from a pipe that somebody else goes on filling

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe for a worker's output", errno);
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  // Only our end: the worker's end is another description and stays blocking.
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return errno_error("pipe for a worker's output", errno);
  return pipe;
}

// The worker's log on disk.
struct LogFile {
  std::filesystem::path path;
  UniqueFd fd;
  std::uint64_t dropped_bytes = 0;
  int first_error = 0;

  Result<void> open() {
    fd.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644));
    if (!fd) return errno_error(path.string(), errno);
    return {};
  }

  void write(std::string_view bytes) {
    while (fd && !bytes.empty()) {
      const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return lose(bytes.size(), errno);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void lose(std::size_t bytes, int error_number) {
    dropped_bytes += bytes;
    if (first_error == 0) first_error = error_number;
  }

  void close() {
    if (fd && ::close(fd.release()) != 0) lose(0, errno);
  }
};

}  // namespace

struct WorkerLog::Impl : std::enable_shared_from_this<WorkerLog::Impl> {
  struct Stream {
    Stream(const asio::any_io_executor& executor, Console::Stream console_stream, std::size_t max_line_bytes)
        : console(console_stream), reader(executor), splitter(max_line_bytes) {}

    Console::Stream console;
    asio::posix::stream_descriptor reader;
    UniqueFd child_end;
    LogFile file;
    LineSplitter splitter;
    std::string block;  // lines of one read, with prefix, on their way to the console
    bool ended = false;
  };

  Impl(asio::any_io_executor io, WorkerLogOptions given)
      : executor(std::move(io)),
        options(std::move(given)),
        out(executor, Console::Stream::out, options.max_line_bytes),
        err(executor, Console::Stream::err, options.max_line_bytes),
        last_lines(options.keep_lines),
        limit_timer(executor) {
    if (options.to_console && !options.console) options.console = Console::of(executor);
    if (!options.to_console) options.console.reset();
  }

  Result<void> open();
  Result<void> open_stream(Stream& stream, const char* file_name);
  void read_when_ready(Stream& stream);
  void read(Stream& stream);
  void pause(Stream& stream);
  bool read_once(Stream& stream);
  void take(Stream& stream, std::string_view bytes);
  void to_console(Stream& stream);
  void add_line(Stream& stream, std::string_view line);
  void report_loss(const LogFile& file);
  void end(Stream& stream);
  void read_the_rest(Stream& stream);
  void finish(Duration limit, std::function<void()> when_done);
  void done_if_ended();

  asio::any_io_executor executor;
  WorkerLogOptions options;
  Stream out;
  Stream err;
  LastLines last_lines;
  asio::steady_timer limit_timer;
  std::function<void()> done;
};

Result<void> WorkerLog::Impl::open() {
  if (!options.folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    if (error) return errno_error(options.folder.string(), error.value());
  }
  if (auto opened = open_stream(out, "stdout.log"); !opened) return opened;
  return open_stream(err, "stderr.log");
}

Result<void> WorkerLog::Impl::open_stream(Stream& stream, const char* file_name) {
  if (!options.folder.empty()) {
    stream.file.path = options.folder / file_name;
    if (auto opened = stream.file.open(); !opened) return opened;
  }
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  stream.reader.assign(pipe->read_end.release());
  stream.child_end = std::move(pipe->write_end);
  return {};
}

void WorkerLog::Impl::read_when_ready(Stream& stream) {
  stream.reader.async_wait(asio::posix::stream_descriptor::wait_read,
                           [weak = weak_from_this(), &stream](boost::system::error_code error) {
                             const auto self = weak.lock();
                             if (!error && self && !stream.ended) self->read(stream);
                           });
}

void WorkerLog::Impl::read(Stream& stream) {
  for (int count = 0; count < kReadsInOneGo; ++count) {
    if (options.console && options.console->full(stream.console)) return pause(stream);
    if (!read_once(stream)) break;
  }
  if (!stream.ended) read_when_ready(stream);
}

void WorkerLog::Impl::pause(Stream& stream) {
  options.console->when_room(stream.console, [weak = weak_from_this(), &stream] {
    const auto self = weak.lock();
    if (self && !stream.ended) self->read_when_ready(stream);
  });
}

// False when there is nothing (more) to read for now; the stream has ended if nothing will come any more.
bool WorkerLog::Impl::read_once(Stream& stream) {
  char buffer[kReadBytes];
  const ssize_t size = ::read(stream.reader.native_handle(), buffer, sizeof buffer);
  if (size > 0) {
    take(stream, {buffer, static_cast<std::size_t>(size)});
    return true;
  }
  if (size < 0 && errno == EINTR) return true;
  if (size < 0 && errno == EAGAIN) return false;
  end(stream);
  return false;
}

void WorkerLog::Impl::take(Stream& stream, std::string_view bytes) {
  const bool all_was_well = stream.file.first_error == 0;
  stream.file.write(bytes);
  if (all_was_well && stream.file.first_error != 0) report_loss(stream.file);
  if (options.console && !options.whole_lines) options.console->write_part(stream.console, bytes);
  if (&stream == &out && !(options.console && options.whole_lines)) return;  // nobody looks at its lines
  stream.splitter.feed(bytes, [&](std::string_view line) { add_line(stream, line); });
  to_console(stream);
}

void WorkerLog::Impl::add_line(Stream& stream, std::string_view line) {
  if (&stream == &err) last_lines.add(line);
  if (!options.console || !options.whole_lines) return;
  stream.block.append(options.prefix).append(line);
  if (line.back() != '\n' && line.back() != '\r') stream.block.push_back('\n');
}

void WorkerLog::Impl::to_console(Stream& stream) {
  if (options.console) options.console->write(stream.console, stream.block);
  stream.block.clear();
}

void WorkerLog::Impl::report_loss(const LogFile& file) {
  if (!options.console) return;
  options.console->write(
      Console::Stream::err,
      fmt::format("muster: {}: {}; the job goes on, {} bytes of this log are lost so far\n",
                  file.path.string(), errno_text(file.first_error), file.dropped_bytes));
}

void WorkerLog::Impl::end(Stream& stream) {
  if (stream.ended) return;
  stream.ended = true;
  stream.splitter.flush([&](std::string_view line) { add_line(stream, line); });
  to_console(stream);
  boost::system::error_code ignored;  // the reading end of a pipe: nothing can be lost here
  stream.reader.close(ignored);
  const bool all_was_well = stream.file.first_error == 0;
  stream.file.close();
  if (stream.file.dropped_bytes > 0 || (all_was_well && stream.file.first_error != 0))
    report_loss(stream.file);
  done_if_ended();
}

// Somebody else holds the pipe: take what the worker has left in it.
void WorkerLog::Impl::read_the_rest(Stream& stream) {
  for (std::size_t taken = 0; taken < kLastReadBytes && !stream.ended; taken += kReadBytes)
    if (!read_once(stream)) break;
  end(stream);
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
  for (Impl::Stream* stream : {&impl_->out, &impl_->err}) {
    stream->child_end.reset();
    impl_->read_when_ready(*stream);
  }
}

void WorkerLog::finish(Duration limit, std::function<void()> done) { impl_->finish(limit, std::move(done)); }

std::vector<std::string> WorkerLog::last_stderr_lines() const { return impl_->last_lines.lines(); }
std::filesystem::path WorkerLog::stderr_path() const { return impl_->err.file.path; }
std::uint64_t WorkerLog::dropped_bytes() const {
  return impl_->out.file.dropped_bytes + impl_->err.file.dropped_bytes;
}

}  // namespace muster::agent
