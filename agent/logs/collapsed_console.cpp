#include "agent/logs/collapsed_console.hpp"

#include <chrono>

#include "base/time.hpp"

namespace muster::agent {

struct CollapsedConsole::Side {
  Side(const boost::asio::any_io_executor& executor, Console::Stream console_stream, LineCollapse collapse)
      : stream(console_stream), lines(std::move(collapse)), timer(executor) {}

  Console::Stream stream;
  LineCollapse lines;
  boost::asio::steady_timer timer;
  std::optional<Instant> armed_for;
};

CollapsedConsole::CollapsedConsole(const boost::asio::any_io_executor& executor,
                                   std::shared_ptr<Console> console, Options options)
    : console_(std::move(console)), options_(std::move(options)) {
  LineCollapse::Limits limits;
  limits.window = options_.window;
  out_ = std::make_shared<Side>(executor, Console::Stream::out, LineCollapse(options_.shown_out, limits));
  err_ = std::make_shared<Side>(executor, Console::Stream::err, LineCollapse(options_.shown_err, limits));
}

CollapsedConsole::~CollapsedConsole() {
  for (const auto& each : {out_, err_}) {
    each->timer.cancel();
    write(*each, Instant::max());
  }
}

CollapsedConsole::Side& CollapsedConsole::side(Console::Stream stream) const {
  return stream == Console::Stream::out ? *out_ : *err_;
}

void CollapsedConsole::add(Console::Stream stream, int local_rank, std::string_view line) {
  side(stream).lines.add(local_rank, line, std::chrono::steady_clock::now());
}

void CollapsedConsole::flush(Console::Stream stream) {
  write(side(stream), std::chrono::steady_clock::now());
  arm(side(stream));
}

void CollapsedConsole::ended(Console::Stream stream, int local_rank) {
  side(stream).lines.ended(local_rank);
  flush(stream);
}

void CollapsedConsole::write(Side& side, Instant now) {
  std::string block;
  const std::string clock = clock_text(std::chrono::system_clock::now());
  for (const LineCollapse::Line& line : side.lines.take(now)) {
    options_.prefix_of(side.stream, line.workers).append_to(block, clock);
    block.append(line.text);
    if (line.text.empty() || (line.text.back() != '\n' && line.text.back() != '\r')) block.push_back('\n');
  }
  console_->write(side.stream, block);
}

void CollapsedConsole::arm(Side& side) {
  const auto wake_at = side.lines.wake_at();
  if (!wake_at || side.armed_for == wake_at) return;
  side.armed_for = wake_at;
  side.timer.expires_at(std::chrono::time_point_cast<std::chrono::steady_clock::duration>(*wake_at));
  side.timer.async_wait([this, weak = std::weak_ptr<Side>(side.stream == Console::Stream::out ? out_ : err_)](
                            boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->armed_for.reset();
    flush(self->stream);
  });
}

}  // namespace muster::agent
