// A text of any length over a process group.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "muster/worker/process_group.hpp"

namespace muster::trainers {

/// The root's text on every rank.
inline std::string broadcast_text(worker::ProcessGroup& group, std::string text, int root) {
  std::array<std::int64_t, 1> size{static_cast<std::int64_t>(text.size())};
  group.broadcast(worker::buffer_of(std::span<std::int64_t>(size)), root)->wait();
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.resize(static_cast<std::size_t>(size[0]));
  group.broadcast(worker::buffer_of(std::span<std::uint8_t>(bytes)), root)->wait();
  return {bytes.begin(), bytes.end()};
}

}  // namespace muster::trainers
