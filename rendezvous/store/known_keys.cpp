#include "rendezvous/store/known_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace muster::rendezvous {
namespace {

using Parts = std::vector<std::string_view>;

Parts parts_of(std::string_view key) {
  Parts parts;
  while (!key.empty()) {
    const auto slash = std::min(key.find('/'), key.size());
    if (slash > 0) parts.push_back(key.substr(0, slash));
    key.remove_prefix(std::min(slash + 1, key.size()));
  }
  return parts;
}

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number < 0) return std::nullopt;
  return number;
}

bool is_device(std::string_view part) {
  constexpr std::array known{"cpu", "cuda", "xpu", "hpu", "mps", "npu", "privateuseone"};
  return std::find(known.begin(), known.end(), part) != known.end();
}

std::string group_name(std::string_view group) { return group == "0" ? "" : std::string(group); }

/// What stands behind the group, and the device if there is one.
std::optional<KnownKey> of_backend(std::string_view group, const Parts& rest, bool cuda) {
  constexpr std::string_view host_mark = "rank_";
  if (rest.size() == 2 && rest[0] == "0") {
    if (const auto rank = number_of(rest[1])) return KnownKey{"gloo address", group_name(group), rank};
    if (rest[1].starts_with(host_mark))
      if (const auto rank = number_of(rest[1].substr(host_mark.size())))
        return KnownKey{"host name for gloo", group_name(group), rank};
  }
  if (rest.size() != 1) return std::nullopt;
  if (rest[0] == "SEQ_NUM_STORE_KEY") return KnownKey{"sequence number", group_name(group), 0};
  if (number_of(rest[0])) return KnownKey{cuda ? "NCCL id" : "communicator id", group_name(group), 0};
  const auto colon = rest[0].find(':');
  if (colon == std::string_view::npos || !number_of(rest[0].substr(colon + 1))) return std::nullopt;
  if (const auto low = number_of(rest[0].substr(0, colon)))
    return KnownKey{fmt::format("NCCL id for the pair {}", rest[0]), group_name(group), low};
  return std::nullopt;
}

/// PyTorch up to 2.0 has no device: the group is one number, and what is left tells the rest.
std::optional<KnownKey> of_process_group(const Parts& parts) {
  const auto device = std::find_if(parts.begin(), parts.end(), is_device);
  if (device == parts.begin()) return std::nullopt;
  if (device != parts.end()) return of_backend(*(device - 1), {device + 1, parts.end()}, *device == "cuda");
  if (!number_of(parts[0])) return std::nullopt;  // a script's own key
  return of_backend(parts[0], {parts.begin() + 1, parts.end()}, true);
}

}  // namespace

std::optional<KnownKey> recognise_key(std::string_view key) {
  const auto parts = parts_of(key);
  if (parts.empty()) return std::nullopt;
  constexpr std::string_view barrier = "store_based_barrier_key:";
  constexpr std::string_view last = ":last_worker";
  auto tail = parts.back();
  if (tail.starts_with(barrier)) {
    tail.remove_prefix(barrier.size());
    if (tail.ends_with(last)) {
      tail.remove_suffix(last.size());
      return KnownKey{"arrival at the barrier", group_name(tail), std::nullopt};
    }
  }
  const auto group = std::find(parts.begin(), parts.end(), "default_pg");
  if (group != parts.end() && group + 1 != parts.end()) return of_process_group({group + 1, parts.end()});
  const auto ours = std::find(parts.begin(), parts.end(), "muster");
  if (parts.end() - ours == 6 && ours[3] == "world" && ours[4] == "address")
    if (const auto rank = number_of(ours[5])) return KnownKey{"address", "", rank};
  return std::nullopt;
}

std::string awaited_text(std::string_view key) {
  const auto known = recognise_key(key);
  if (!known) return "key " + shown_key(key);
  const auto in_group = known->group.empty() ? std::string() : " in group " + known->group;
  if (!known->owner) return "the last " + known->what + in_group;
  if (known->group.empty()) return fmt::format("rank {}'s {}", *known->owner, known->what);
  return fmt::format("the {} of member {} (from 0){}", known->what, *known->owner, in_group);
}

std::string shown_key(std::string_view key) {
  constexpr std::size_t shown_bytes_max = 80;
  std::string text;
  for (const unsigned char byte : key.substr(0, shown_bytes_max))
    text += byte >= 0x20 && byte < 0x7f ? std::string(1, static_cast<char>(byte))
                                        : fmt::format("\\x{:02x}", byte);
  return "'" + text + (key.size() > shown_bytes_max ? "...'" : "'");
}

}  // namespace muster::rendezvous
