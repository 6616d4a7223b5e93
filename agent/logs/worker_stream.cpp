#include "agent/logs/worker_stream.hpp"

#include "agent/logs/collapsed_console.hpp"
#include "agent/logs/matched_lines.hpp"
#include "base/time.hpp"

namespace muster::agent {

namespace {
bool has_end(std::string_view line) { return !line.empty() && (line.back() == '\n' || line.back() == '\r'); }
}  // namespace

bool WorkerStream::needs_each_line() const {
  const bool shown = route_.to_console && around_.options.whole_lines;
  return !route_.matched.empty() || (shown && (around_.options.collapsed || !route_.prefix.empty()));
}

bool WorkerStream::needs_whole_lines() const {
  return last_lines_ || (file_ && file_is_shared_) || (route_.to_console && around_.options.whole_lines);
}

std::string WorkerStream::clock() const {
  const bool shows_time = route_.prefix.has_time() || around_.options.matched_prefix.has_time();
  return shows_time ? clock_text(std::chrono::system_clock::now()) : std::string();
}

void WorkerStream::take(std::string_view bytes) {
  if (file_ && !file_is_shared_) file_->write(bytes);
  if (route_.to_console && !around_.options.whole_lines) around_.console().write_part(stream_, bytes);
  if (needs_each_line())
    splitter_.feed(bytes, [this, now = clock()](std::string_view line) { take_line(line, now); });
  else if (needs_whole_lines())
    splitter_.feed_blocks(bytes, [this](std::string_view lines) { take_lines(lines); });
  flush();
}

void WorkerStream::end() {
  splitter_.flush([this, now = clock()](std::string_view line) {
    if (needs_each_line())
      take_line(line, now);
    else
      take_lines(line);
  });
  flush();
  if (route_.to_console && around_.options.collapsed)
    around_.options.collapsed->ended(stream_, around_.options.local_rank);
}

// Nobody wants to see them one by one: they are handed on as they are, uncopied.
void WorkerStream::take_lines(std::string_view lines) {
  if (last_lines_) last_lines_->add_all(lines);
  if (file_ && file_is_shared_) file_->write(lines);
  if (!route_.to_console || !around_.options.whole_lines) return;
  around_.console().write(stream_, lines);
  if (!has_end(lines)) around_.console().write_part(stream_, "\n");
}

void WorkerStream::take_line(std::string_view line, std::string_view clock) {
  if (last_lines_) last_lines_->add(line);
  if (file_ && file_is_shared_) file_block_.append(line);
  for (const auto& matched : route_.matched) matched->offer(line, around_.options.matched_prefix, clock);
  if (route_.to_console && around_.options.whole_lines) show(line, clock);
}

void WorkerStream::show(std::string_view line, std::string_view clock) {
  if (around_.options.collapsed)
    return around_.options.collapsed->add(stream_, around_.options.local_rank, line);
  route_.prefix.append_to(console_block_, clock);
  console_block_.append(line);
  if (!has_end(line)) console_block_.push_back('\n');
}

void WorkerStream::flush() {
  if (!console_block_.empty()) around_.console().write(stream_, console_block_);
  console_block_.clear();
  if (file_ && file_is_shared_) file_->write(file_block_);
  file_block_.clear();
  for (const auto& matched : route_.matched) matched->flush();
  if (route_.to_console && around_.options.collapsed && around_.options.whole_lines)
    around_.options.collapsed->flush(stream_);
}

}  // namespace muster::agent
