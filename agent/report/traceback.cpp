#include "agent/report/traceback.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

namespace muster::agent {

namespace {

constexpr std::string_view kHead = "Traceback (most recent call last):";

struct Line {
  std::string_view text;
  bool ranked = false;  // PyTorch wrote "[rank1]: " before it
};

Line line_of(std::string_view text) {
  if (!text.starts_with("[rank")) return {text};
  const auto end = text.find("]:");
  if (end == std::string_view::npos) return {text};
  text.remove_prefix(end + 2);
  const bool ranked = text.starts_with(' ');  // what PyTorch logs from C++ has no space there
  if (ranked) text.remove_prefix(1);
  return {text, ranked};
}

bool is_library(std::string_view path) {
  for (const std::string_view part : {"/site-packages/", "/dist-packages/", "/lib/python", "<frozen "})
    if (path.find(part) != std::string_view::npos) return true;
  return false;
}

struct Frame {
  std::string_view path;
  std::string_view line;
};

// `  File "train.py", line 42, in main`
std::optional<Frame> frame_of(std::string_view text) {
  constexpr std::string_view kFile = "  File \"";
  constexpr std::string_view kLine = "\", line ";
  const auto middle = text.find(kLine);
  if (!text.starts_with(kFile) || middle == std::string_view::npos) return std::nullopt;
  std::string_view number = text.substr(middle + kLine.size());
  std::size_t digits = 0;
  while (digits < number.size() && std::isdigit(static_cast<unsigned char>(number[digits]))) ++digits;
  return Frame{text.substr(kFile.size(), middle - kFile.size()), number.substr(0, digits)};
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// Before a traceback that does not end the program.
bool begins_ignored(std::string_view text) {
  return starts_with_any(text, {"Exception ignored", "Error in atexit"});
}
// "Process SpawnProcess-1:"
bool begins_elsewhere(std::string_view text) {
  return text.starts_with("Exception in thread ") || (text.starts_with("Process ") && text.ends_with(':') &&
                                                      text.find("Process-") != std::string_view::npos);
}

bool goes_on_with_another(std::string_view text) {
  return starts_with_any(text,
                         {"During handling of the above exception", "The above exception was the direct"});
}

// "[W1130 17:28:50.12 ProcessGroupNCCL.cpp:1250] Warning: ..."
bool is_cpp_log(std::string_view text) {
  return text.size() > 2 && text[0] == '[' &&
         std::string_view("IWEF").find(text[1]) != std::string_view::npos &&
         std::isdigit(static_cast<unsigned char>(text[2]));
}

// Further lines of messages that PyTorch and NCCL write in several.
bool continues_a_message(std::string_view text, std::string_view before) {
  return before == "Last error:" ||
         starts_with_any(text, {"CUDA kernel errors might", "For debugging consider",
                                "Compile with `TORCH_USE", "Search for `cuda", "Device-side assert", "nccl",
                                "Last error:", "making sure all", "`forward` function", "If you already have",
                                "Parameter indices", "In addition, you", "This error indicates"});
}

// What stands after a traceback though the program did nothing any more: the rest of the message, PyTorch's C++ at its
// exit with its own call stack, Python's own warnings at its exit, a progress bar that is closed, a service's goodbye.
bool is_trailer(std::string_view text, std::string_view before) {
  if (text.find_first_not_of(" \t\r") == std::string_view::npos || text[0] == ' ' || text[0] == '\t')
    return true;
  return is_cpp_log(text) || begins_elsewhere(text) || continues_a_message(text, before) ||
         starts_with_any(
             text, {"Exception raised from ", "frame #", "<omitting python frames>", "sys:1: ", "wandb:"}) ||
         has_any(text, {"resource_tracker", ": ResourceWarning: ", "%|"});
}

class Reader {
 public:
  void read(const Line& line) {
    const std::string_view text = line.text;
    if (begins_ignored(text)) {
      kind_ = Kind::ignored;
      inside_ = headed_ = true;
      begin();
    } else if (text == kHead) {
      if (!headed_) kind_ = begins_elsewhere(before_) ? Kind::elsewhere : Kind::own;
      inside_ = true;
      begin();
    } else if (const auto frame = frame_of(text)) {
      if (!inside_) kind_ = Kind::own;  // its head was cut off
      inside_ = true;
      take(*frame);
    } else if (inside_ && !text.empty() && text.front() != ' ') {
      inside_ = headed_ = false;
      end(line);
    } else if (!inside_ && goes_on_with_another(text)) {
      headed_ = kind_ != Kind::own;
    } else if (!inside_ && found_ && !ranked_ && !is_trailer(text, before_)) {
      found_->last = false;
    }
    before_ = text;
  }
  const std::optional<Traceback>& found() const { return found_; }

 private:
  enum class Kind { own, elsewhere, ignored };

  void begin() {
    place_.clear();
    in_library_ = true;
  }
  void take(const Frame& frame) {
    const bool library = is_library(frame.path);
    if (library && !in_library_) return;
    in_library_ = library;
    place_ = std::string(frame.path.substr(frame.path.rfind('/') + 1)) + " line " + std::string(frame.line);
  }
  void end(const Line& line) {
    if (kind_ == Kind::ignored || (kind_ == Kind::elsewhere && found_ && found_kind_ == Kind::own)) return;
    found_ = Traceback{std::string(line.text), place_, true};
    found_kind_ = kind_;
    ranked_ = line.ranked;
  }

  std::string_view before_;
  std::string place_;
  Kind kind_ = Kind::own;
  bool inside_ = false;
  bool headed_ = false;  // a line said whose traceback comes
  bool in_library_ = true;
  std::optional<Traceback> found_;
  Kind found_kind_ = Kind::own;
  bool ranked_ = false;
};

}  // namespace

std::optional<Traceback> find_traceback(const std::vector<std::string>& lines) {
  Reader reader;
  for (const std::string& line : lines) reader.read(line_of(line));
  return reader.found();
}

}  // namespace muster::agent
