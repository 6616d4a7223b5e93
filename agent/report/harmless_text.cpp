#include "agent/report/harmless_text.hpp"

#include <algorithm>

namespace muster::agent {
namespace {

/// Of the escape sequence at the beginning of `text`, as ECMA-48 shapes them: CSI ends with a byte from '@' to '~', OSC
/// and its like with BEL or ESC \\, the others with a byte from '0' on.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  std::size_t end = text.size();
  if (text[1] == '[') {
    end = 2;
    while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
    ++end;
  } else if (std::string_view("]PX^_").find(text[1]) != std::string_view::npos) {
    const std::size_t bell = text.find('\a');
    const std::size_t terminator = text.find("\x1b\\", 2);
    end = bell < terminator ? bell + 1 : terminator == std::string_view::npos ? text.size() : terminator + 2;
  } else {
    end = 1;
    while (end < text.size() && text[end] < '0') ++end;
    ++end;
  }
  return std::min(end, text.size());
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (byte == '\x1b') {
      const std::size_t length = escape_length(text.substr(at));
      const std::string_view sequence = text.substr(at, length);
      if (sequence.starts_with("\x1b[") && sequence.ends_with('m')) kept += sequence;
      at += length - 1;
    } else if (static_cast<unsigned char>(byte) >= 0x20 ? byte != 0x7f : byte == '\t' || byte == '\n') {
      kept += byte;
    }
  }
  return kept;
}

}  // namespace muster::agent
