// One of a worker's two streams: the bytes that were read, on their way to file, console and memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/logs/console.hpp"
#include "agent/logs/last_lines.hpp"
#include "agent/logs/lines.hpp"
#include "agent/logs/log_file.hpp"
#include "agent/logs/worker_log.hpp"

namespace muster::agent {

/// Does not read by itself. What it refers to must outlive it.
class WorkerStream {
 public:
  /// Both streams' shared surroundings.
  struct Around {
    WorkerLogOptions& options;
    const std::function<Console&()>& console;
  };

  /// `last_lines` may be null. `file` may be null; with `file_is_shared` it gets whole lines only.
  WorkerStream(Around around, Console::Stream stream, StreamRoute& route, LastLines* last_lines)
      : around_(around),
        stream_(stream),
        route_(route),
        last_lines_(last_lines),
        splitter_(around.options.max_line_bytes) {}

  void write_to(std::shared_ptr<LogFile> file, bool file_is_shared) {
    file_ = std::move(file);
    file_is_shared_ = file_is_shared;
  }

  void take(std::string_view bytes);
  /// Nothing more will come.
  void end();
  /// True while the console would rather have the worker wait.
  bool console_is_full() const { return route_.to_console && around_.console().full(stream_); }
  Console::Stream console_stream() const { return stream_; }

 private:
  bool needs_each_line() const;
  bool needs_whole_lines() const;
  void take_lines(std::string_view lines);
  void take_line(std::string_view line, std::string_view clock);
  void show(std::string_view line, std::string_view clock);
  void flush();
  std::string clock() const;

  Around around_;
  Console::Stream stream_;
  StreamRoute& route_;
  LastLines* last_lines_;
  std::shared_ptr<LogFile> file_;
  bool file_is_shared_ = false;
  LineSplitter splitter_;
  std::string console_block_;  // lines of one read, with prefix
  std::string file_block_;     // the same for a shared file, without
};

}  // namespace muster::agent
