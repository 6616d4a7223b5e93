#include "trainers/parallel/unit_layout.hpp"

#include <algorithm>
#include <numeric>

#include "trainers/parallel/shard.hpp"

namespace muster::trainers {
namespace {

/// What travels together is no more than this share of the unit.
constexpr std::int64_t kSmallShare = 32;

/// The smallest parameters, as many as are a small share together. A unit that is one part needs no order: it is one
/// message as it lies.
void choose_together(UnitLayout& layout, int parts) {
  if (parts == 1) return;
  std::vector<std::size_t> by_size(layout.entries.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](auto a, auto b) {
    return layout.entries[a].part_count < layout.entries[b].part_count;
  });
  std::int64_t chosen = 0;
  for (const auto index : by_size) {
    auto& entry = layout.entries[index];
    chosen += entry.part_count * parts;
    if (chosen * kSmallShare > layout.parameter_count) return;
    entry.together = true;
  }
}

UnitLayout::Message add_to_part(UnitLayout& layout, std::size_t index) {
  auto& entry = layout.entries[index];
  entry.place_in_part = layout.part_count;
  layout.part_count += entry.part_count;
  return {.part_count = entry.part_count, .place_in_part = entry.place_in_part, .entries = {index}};
}

void add_to(UnitLayout::Message& all, const UnitLayout::Message& more) {
  if (all.part_count == 0) all.place_in_part = more.place_in_part;
  all.part_count += more.part_count;
  all.entries.insert(all.entries.end(), more.entries.begin(), more.entries.end());
}

}  // namespace

std::int64_t UnitLayout::packed_place(const Entry& entry, int part) const {
  const auto& message = messages.back();
  return message.place_in_block + part * message.part_count + entry.place_in_part - message.place_in_part;
}

std::int64_t UnitLayout::packed_flag(int part) const {
  const auto& message = messages.back();
  return message.place_in_block + part * message.part_count + flag_in_part - message.place_in_part;
}

UnitLayout lay_out_unit(const std::vector<Shape>& shapes, int parts, Flag flag) {
  UnitLayout layout;
  for (const auto& shape : shapes) {
    const auto count = count_of(shape);
    const auto columns =
        std::accumulate(shape.begin() + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
    layout.parameter_count += count;
    layout.entries.push_back({.shape = shape,
                              .columns = columns,
                              .part_count = rows_of_part(shape.at(0), parts, 0).count * columns});
  }
  choose_together(layout, parts);
  UnitLayout::Message together;
  for (std::size_t i = 0; i < layout.entries.size(); ++i) {
    if (layout.entries[i].together) continue;
    const auto message = add_to_part(layout, i);
    if (parts > 1)
      layout.messages.push_back(message);
    else
      add_to(together, message);
  }
  for (std::size_t i = 0; i < layout.entries.size(); ++i)
    if (layout.entries[i].together) add_to(together, add_to_part(layout, i));
  if (flag == Flag::one) {
    layout.flag_in_part = layout.part_count;
    add_to(together, {.part_count = 1, .place_in_part = layout.part_count++});
  }
  if (together.part_count > 0) layout.messages.push_back(together);

  // All that is before it in a part is before it in the block, as often as there are parts.
  for (auto& message : layout.messages) message.place_in_block = parts * message.place_in_part;
  layout.travelling_count = layout.block_count = parts * layout.part_count;
  for (auto& entry : layout.entries) {
    entry.place_in_block = parts * entry.place_in_part;
    if (!entry.together) continue;
    entry.place_in_block = layout.block_count;
    layout.block_count += count_of(entry.shape);
  }
  return layout;
}

}  // namespace muster::trainers
