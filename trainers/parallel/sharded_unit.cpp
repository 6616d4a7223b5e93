#include "trainers/parallel/sharded_unit.hpp"

#include <algorithm>
#include <stdexcept>

#include "trainers/parallel/ddp.hpp"
#include "trainers/parallel/tensor_buffer.hpp"

namespace muster::trainers {
namespace {

using worker::ElementType;

std::int64_t bytes_of(ElementType type, std::int64_t count) {
  return static_cast<std::int64_t>(worker::size_of(type)) * count;
}

using Works = std::vector<std::shared_ptr<worker::Work>>;

void wait_for(Works& works) {
  for (const auto& work : works) work->wait();
  works.clear();
}

bool under_way(const Works& works) {
  return std::any_of(works.begin(), works.end(), [](const auto& work) { return !work->done(); });
}

}  // namespace

ShardedUnit::ShardedUnit(const std::vector<Parameter*>& parameters, ShardingGroups groups,
                         UnitOptions options, UnitPools& pools)
    : groups_(groups),
      options_(options),
      pools_(pools),
      device_(parameters.empty() ? cpu_device() : parameters.front()->value.device()) {
  take_over(parameters);
  name_messages();
  share_initial_values();
  cut();
}

ShardedUnit::~ShardedUnit() {
  for (auto& entry : entries_) entry.whole->on_gradient_ready = nullptr;
  const auto leave = [](BlockPool& pool, Tensor& block, bool kept, bool in_use) {
    if (in_use)
      kept ? keep_until_the_process_ends(block) : pool.abandon(block);
    else if (!kept)
      pool.give_back(block);
  };
  const bool gathering = under_way(gathering_);
  const bool scattering = under_way(scattering_);
  leave(pools_.wholes, whole_values_, options_.keep_values, gathering);
  leave(pools_.parts, outgoing_, false, gathering);
  leave(pools_.wholes, whole_gradients_, options_.keep_gradients, scattering);
  if (gathering) keep_until_the_process_ends(masters_);
  if (scattering || under_way(replicating_)) keep_until_the_process_ends(own_gradients_);
}

void ShardedUnit::take_over(const std::vector<Parameter*>& parameters) {
  std::vector<Shape> shapes;
  for (auto* parameter : parameters) {
    shapes.push_back(parameter->value.shape());
    entries_.push_back({.whole = parameter, .shard = std::make_unique<Parameter>(parameter->name, Shape{0})});
  }
  layout_ = lay_out_unit(shapes, parts(), options_.flag);
  own_gradients_name_ = numbers_of("gradients", parameters);
}

void ShardedUnit::name_messages() {
  for (const auto& message : layout_.messages) {
    std::vector<Parameter*> moved;
    for (const auto entry : message.entries) moved.push_back(entries_[entry].whole);
    names_.push_back({.values = numbers_of("values", moved), .gradients = numbers_of("gradients", moved)});
  }
}

/// Among those who share a copy first, then from the first copy to the others.
void ShardedUnit::share_initial_values() {
  std::vector<Tensor*> values;
  for (auto& entry : entries_) values.push_back(&entry.whole->value);
  broadcast(groups_.shard, values, 0);
  broadcast(groups_.replicate, values, 0);
}

/// Keeps this rank's rows, and frees what the layers have held until now.
void ShardedUnit::cut() {
  masters_ = Tensor({layout_.part_count}, device_);
  own_gradients_ = Tensor({layout_.part_count}, device_);
  if (options_.flag == Flag::one) raised_ = Tensor({1}, device_);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    auto& entry = entries_[i];
    const auto& place = layout_.entries[i];
    const auto own = rows_of_part(place.shape.at(0), parts(), groups_.shard.rank());
    const auto shape = shape_of_rows(place.shape, own);
    entry.shard->value = Tensor::part_of(masters_, place.place_in_part, shape);
    entry.shard->gradient = Tensor::part_of(own_gradients_, place.place_in_part, shape);
    store_numbers(device_, ElementType::f32, entry.shard->value.data(), 0,
                  entry.whole->value.data() + own.first * place.columns, own.count * place.columns);
    entry.whole->value = Tensor();
    entry.whole->gradient = Tensor();
    shards_.push_back({.parameter = entry.shard.get(),
                       .full_shape = place.shape,
                       .rows = own,
                       .first_copy = groups_.replicate.rank() == 0});
  }
  if (options_.keep_values && !values_in_place()) whole_values_ = Tensor({layout_.block_count}, device_);
  if (options_.keep_gradients && !gradients_in_place())
    whole_gradients_ = Tensor({layout_.block_count}, device_);
}

void ShardedUnit::show_values(const Tensor& block) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto& place = layout_.entries[i];
    entries_[i].whole->value = Tensor::part_of(block, place.place_in_block, place.shape);
  }
}

void ShardedUnit::show_gradients(const Tensor& block) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto& place = layout_.entries[i];
    entries_[i].whole->gradient = Tensor::part_of(block, place.place_in_block, place.shape);
  }
}

worker::Buffer ShardedUnit::buffer_of_part(void* block, ElementType type, std::int64_t place,
                                           std::int64_t count) const {
  return {static_cast<std::byte*>(block) + bytes_of(type, place), static_cast<std::size_t>(count), type,
          device_.place()};
}

void ShardedUnit::start_gather_as(ElementType type) {
  void* own = masters_.data();
  if (type != ElementType::f32) {
    outgoing_ = pools_.parts.take(bytes_of(type, layout_.part_count));
    own = outgoing_.data();
    store_numbers(device_, type, own, 0, masters_.data(), layout_.part_count);
  }
  if (!options_.keep_values)
    whole_values_ = pools_.wholes.take(bytes_of(ElementType::f32, layout_.block_count));
  void* all = narrow_end(type, whole_values_.data(), layout_.travelling_count);
  for (std::size_t i = 0; i < layout_.messages.size(); ++i) {
    const auto& message = layout_.messages[i];
    gathering_.push_back(groups_.shard.all_gather(
        buffer_of_part(own, type, message.place_in_part, message.part_count),
        buffer_of_part(all, type, message.place_in_block, message.part_count * parts())
            .named(names_[i].values)));
  }
}

void ShardedUnit::finish_gather_as(ElementType type) {
  wait_for(gathering_);
  pools_.parts.give_back(outgoing_);
  widen_in_place(device_, type, whole_values_.data(), layout_.travelling_count, pools_.scratch);
  show_values(whole_values_);
  unpack_values();
  gathered_ = true;
}

/// What came together goes to places of its own.
void ShardedUnit::unpack_values() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto& place = layout_.entries[i];
    if (!place.together) continue;
    for (int part = 0; part < parts(); ++part) {
      const auto rows = rows_of_part(place.shape.at(0), parts(), part);
      load_numbers(device_, ElementType::f32, whole_values_.data(), layout_.packed_place(place, part),
                   entries_[i].whole->value.data() + rows.first * place.columns, rows.count * place.columns);
    }
  }
}

void ShardedUnit::start_gather() {
  if (gathered_ || !gathering_.empty() || values_in_place()) return;
  start_gather_as(options_.precision.parameters);
}

void ShardedUnit::gather() {
  if (gathered_) return;
  start_gather();
  if (values_in_place()) {
    show_values(masters_);
    gathered_ = true;
  } else {
    finish_gather_as(options_.precision.parameters);
  }
}

void ShardedUnit::gather_masters() {
  if (!gathering_.empty()) gather();
  release();
  if (values_in_place()) return gather();
  start_gather_as(ElementType::f32);
  finish_gather_as(ElementType::f32);
}

void ShardedUnit::release() {
  if (!gathered_) return;
  gathered_ = false;
  for (auto& entry : entries_) entry.whole->value = Tensor();
  if (!options_.keep_values) pools_.wholes.give_back(whole_values_);
}

void ShardedUnit::make_room() {
  if (gradients_in_place()) return show_gradients(own_gradients_);
  if (whole_gradients_.count() == 0)
    whole_gradients_ = pools_.wholes.take(bytes_of(ElementType::f32, layout_.block_count));
  show_gradients(whole_gradients_);
}

/// The numbers that fill the last parts up.
void ShardedUnit::fill_up(const UnitLayout::Entry& entry) {
  const auto count = count_of(entry.shape);
  store_zeros(device_, ElementType::f32, whole_gradients_.data(), entry.place_in_block + count,
              entry.part_count * parts() - count);
}

/// All that travels lies at the beginning of the block, in the type in which it does.
void ShardedUnit::pack_gradients(bool flag) {
  auto* block = whole_gradients_.data();
  for (const auto& place : layout_.entries) {
    if (!place.together) {
      fill_up(place);
      continue;
    }
    for (int part = 0; part < parts(); ++part) {
      const auto rows = rows_of_part(place.shape.at(0), parts(), part);
      const auto count = rows.count * place.columns;
      const auto begin = layout_.packed_place(place, part);
      store_numbers(device_, ElementType::f32, block, begin,
                    block + place.place_in_block + rows.first * place.columns, count);
      store_zeros(device_, ElementType::f32, block, begin + count, place.part_count - count);
    }
  }
  if (options_.flag == Flag::one) {
    raised_.write(0, flag ? 1 : 0);
    for (int part = 0; part < parts(); ++part)
      store_numbers(device_, ElementType::f32, block, layout_.packed_flag(part), raised_.data(), 1);
  }
  narrow_in_place(device_, options_.precision.reduction, block, layout_.travelling_count, pools_.scratch);
}

/// They are reduced in the memory that they are widened in: other memory would be held from the first unit's reduction to
/// the end of the step, for every unit, where copies of the state are averaged.
void* ShardedUnit::own_gradients_as_reduced() {
  return narrow_end(options_.precision.reduction, own_gradients_.data(), layout_.part_count);
}

void ShardedUnit::start_reduce(bool flag) {
  if (gradients_in_place()) {
    if (options_.flag == Flag::one) own_gradients_.write(layout_.flag_in_part, flag ? 1 : 0);
    start_replicating();
    return;
  }
  pack_gradients(flag);
  for (auto& entry : entries_) entry.whole->gradient = Tensor();
  const auto type = options_.precision.reduction;
  for (std::size_t i = 0; i < layout_.messages.size(); ++i) {
    const auto& message = layout_.messages[i];
    scattering_.push_back(groups_.shard.reduce_scatter(
        buffer_of_part(whole_gradients_.data(), type, message.place_in_block, message.part_count * parts()),
        buffer_of_part(own_gradients_as_reduced(), type, message.place_in_part, message.part_count)
            .named(names_[i].gradients),
        worker::ReduceOp::average));
  }
}

void ShardedUnit::finish_scatter() {
  if (scattering_.empty()) return;
  wait_for(scattering_);
  if (!options_.keep_gradients) pools_.wholes.give_back(whole_gradients_);
  start_replicating();
}

void ShardedUnit::start_replicating() {
  replicating_.push_back(groups_.replicate.all_reduce(
      buffer_of_part(own_gradients_as_reduced(), options_.precision.reduction, 0, layout_.part_count)
          .named(own_gradients_name_),
      worker::ReduceOp::average));
}

void ShardedUnit::finish_reduce() {
  finish_scatter();
  wait_for(replicating_);
  widen_in_place(device_, options_.precision.reduction, own_gradients_.data(), layout_.part_count,
                 pools_.scratch);
}

bool ShardedUnit::flag_was_raised() const {
  return options_.flag == Flag::one && own_gradients_.read(layout_.flag_in_part) > 0;
}

std::int64_t ShardedUnit::kept_bytes() const {
  const auto kept = masters_.count() + own_gradients_.count() +
                    (options_.keep_values ? whole_values_.count() : 0) +
                    (options_.keep_gradients ? whole_gradients_.count() : 0);
  return bytes_of(ElementType::f32, kept);
}

}  // namespace muster::trainers
