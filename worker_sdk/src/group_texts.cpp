#include "worker_sdk/src/group_texts.hpp"

#include <array>

namespace muster::worker {

std::string broadcast_text(ProcessGroup& group, std::string text, int root) {
  std::array<std::int64_t, 1> size{static_cast<std::int64_t>(text.size())};
  group.broadcast(buffer_of(std::span<std::int64_t>(size)), root)->wait();
  if (size[0] == 0) return {};
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.resize(static_cast<std::size_t>(size[0]));
  group.broadcast(buffer_of(std::span<std::uint8_t>(bytes)), root)->wait();
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string> broadcast_texts(ProcessGroup& group, const std::vector<std::string>& texts,
                                         int root) {
  std::vector<std::int64_t> sizes;
  std::string all;
  for (const auto& text : texts) {
    sizes.push_back(static_cast<std::int64_t>(text.size()));
    all += text;
  }
  std::array<std::int64_t, 1> count{static_cast<std::int64_t>(texts.size())};
  group.broadcast(buffer_of(std::span<std::int64_t>(count)), root)->wait();
  sizes.resize(static_cast<std::size_t>(count[0]));
  if (!sizes.empty()) group.broadcast(buffer_of(std::span(sizes)), root)->wait();
  all = broadcast_text(group, std::move(all), root);
  std::vector<std::string> parts;
  std::size_t first = 0;
  for (auto size : sizes) {
    parts.push_back(all.substr(first, static_cast<std::size_t>(size)));
    first += static_cast<std::size_t>(size);
  }
  return parts;
}

std::vector<std::string> exchange_texts(ProcessGroup& group, const std::string& text) {
  std::vector<std::string> texts;
  for (int root = 0; root < group.size(); ++root)
    texts.push_back(broadcast_text(group, root == group.rank() ? text : std::string(), root));
  return texts;
}

}  // namespace muster::worker
