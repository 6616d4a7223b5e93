#include "agent/report/traceback.hpp"

#include <cctype>
#include <string_view>

namespace muster::agent {

namespace {

constexpr std::string_view kHead = "Traceback (most recent call last):";

std::string_view without_rank(std::string_view line) {
  if (!line.starts_with("[rank")) return line;
  const auto end = line.find("]: ");
  return end == std::string_view::npos ? line : line.substr(end + 3);
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

class Reader {
 public:
  void read(std::string_view line) {
    if (line == kHead) {
      inside_ = true;
      ignored_ = before_.starts_with("Exception ignored");
      place_.clear();
      in_library_ = true;
    } else if (const auto frame = frame_of(line)) {
      inside_ = true;  // its head may have been cut off
      take(*frame);
    } else if (inside_ && !line.empty() && line.front() != ' ') {
      inside_ = false;
      if (!ignored_) found_ = Traceback{std::string(line), place_};
    }
    before_ = line;
  }
  const std::optional<Traceback>& found() const { return found_; }

 private:
  void take(const Frame& frame) {
    const bool library = is_library(frame.path);
    if (library && !in_library_) return;
    in_library_ = library;
    place_ = std::string(frame.path.substr(frame.path.rfind('/') + 1)) + " line " + std::string(frame.line);
  }

  std::string_view before_;
  std::string place_;
  bool inside_ = false;
  bool ignored_ = false;
  bool in_library_ = true;
  std::optional<Traceback> found_;
};

}  // namespace

std::optional<Traceback> find_traceback(const std::vector<std::string>& lines) {
  Reader reader;
  for (const std::string& line : lines) reader.read(without_rank(line));
  return reader.found();
}

}  // namespace muster::agent
