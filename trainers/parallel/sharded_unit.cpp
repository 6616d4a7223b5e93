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

void wait_for(std::shared_ptr<worker::Work>& work) {
  if (work) work->wait();
  work = nullptr;
}

}  // namespace

ShardedUnit::ShardedUnit(const std::vector<Parameter*>& parameters, ShardingGroups groups,
                         UnitOptions options, UnitPools& pools)
    : groups_(groups),
      options_(options),
      pools_(pools),
      device_(parameters.empty() ? cpu_device() : parameters.front()->value.device()),
      values_name_(numbers_of("values", parameters)),
      gradients_name_(numbers_of("gradients", parameters)) {
  lay_out(parameters);
  share_initial_values();
  cut();
}

ShardedUnit::~ShardedUnit() {
  for (auto& entry : entries_) entry.whole->on_gradient_ready = nullptr;
  pools_.wholes.give_back(incoming_, gathering_);
  pools_.parts.give_back(outgoing_, gathering_);
  pools_.wholes.give_back(to_reduce_, scattering_);
  const auto last = replicating_ ? replicating_ : scattering_;
  const auto under_way = [](const auto& work) { return work && !work->done(); };
  if (under_way(gathering_)) keep_until_the_process_ends(masters_);
  if (under_way(last)) keep_until_the_process_ends(own_gradients_);
}

void ShardedUnit::lay_out(const std::vector<Parameter*>& parameters) {
  for (auto* parameter : parameters) {
    const auto& shape = parameter->value.shape();
    const auto largest = rows_of_part(shape.at(0), parts(), 0).count;
    Entry entry{.whole = parameter,
                .shard = std::make_unique<Parameter>(parameter->name, Shape{0}),
                .shape = shape,
                .columns = parameter->value.columns(),
                .place_in_part = part_count_,
                .place_in_whole = whole_count_};
    part_count_ += largest * entry.columns;
    whole_count_ += parameter->value.count();
    entries_.push_back(std::move(entry));
  }
  if (options_.has_flag) ++part_count_;
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
  masters_ = Tensor({part_count_}, device_);
  own_gradients_ = Tensor({part_count_}, device_);
  if (options_.has_flag) raised_ = Tensor({1}, device_);
  for (auto& entry : entries_) {
    const auto own = rows_of_part(entry.shape.at(0), parts(), groups_.shard.rank());
    const auto shape = shape_of_rows(entry.shape, own);
    entry.shard->value = Tensor::part_of(masters_, entry.place_in_part, shape);
    entry.shard->gradient = Tensor::part_of(own_gradients_, entry.place_in_part, shape);
    store_numbers(device_, ElementType::f32, entry.shard->value.data(), 0,
                  entry.whole->value.data() + own.first * entry.columns, own.count * entry.columns);
    entry.whole->value = Tensor();
    entry.whole->gradient = Tensor();
    shards_.push_back({.parameter = entry.shard.get(),
                       .full_shape = entry.shape,
                       .rows = own,
                       .first_copy = groups_.replicate.rank() == 0});
  }
  if (options_.keep_whole && !values_in_place()) whole_values_ = Tensor({whole_count_}, device_);
  if (options_.keep_whole && !gradients_in_place()) whole_gradients_ = Tensor({whole_count_}, device_);
}

void ShardedUnit::show_values(const Tensor& block) {
  for (auto& entry : entries_) entry.whole->value = Tensor::part_of(block, entry.place_in_whole, entry.shape);
}

void ShardedUnit::show_gradients(const Tensor& block) {
  for (auto& entry : entries_)
    entry.whole->gradient = Tensor::part_of(block, entry.place_in_whole, entry.shape);
}

void ShardedUnit::start_gather_as(ElementType type) {
  if (type != ElementType::f32) {
    outgoing_ = pools_.parts.take(bytes_of(type, part_count_));
    store_numbers(device_, type, outgoing_.data(), 0, masters_.data(), part_count_);
  }
  incoming_ = pools_.wholes.take(bytes_of(type, part_count_ * parts()));
  gathering_ =
      groups_.shard.all_gather(buffer_of(type == ElementType::f32 ? masters_ : outgoing_, type, part_count_),
                               buffer_of(incoming_, type, part_count_ * parts()).named(values_name_));
}

void ShardedUnit::finish_gather_as(ElementType type) {
  wait_for(gathering_);
  pools_.parts.give_back(outgoing_);
  if (!options_.keep_whole) whole_values_ = pools_.wholes.take(bytes_of(ElementType::f32, whole_count_));
  show_values(whole_values_);
  for (auto& entry : entries_) {
    for (int part = 0; part < parts(); ++part) {
      const auto rows = rows_of_part(entry.shape.at(0), parts(), part);
      load_numbers(device_, type, incoming_.data(), part * part_count_ + entry.place_in_part,
                   entry.whole->value.data() + rows.first * entry.columns, rows.count * entry.columns);
    }
  }
  pools_.wholes.give_back(incoming_);
  gathered_ = true;
}

void ShardedUnit::start_gather() {
  if (gathered_ || gathering_ || values_in_place()) return;
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
  if (gathering_) gather();
  release();
  if (values_in_place()) return gather();
  start_gather_as(ElementType::f32);
  finish_gather_as(ElementType::f32);
}

void ShardedUnit::release() {
  if (!gathered_) return;
  gathered_ = false;
  for (auto& entry : entries_) entry.whole->value = Tensor();
  if (!options_.keep_whole && !values_in_place()) pools_.wholes.give_back(whole_values_);
}

void ShardedUnit::make_room() {
  if (gradients_in_place()) return show_gradients(own_gradients_);
  if (whole_gradients_.count() == 0)
    whole_gradients_ = pools_.wholes.take(bytes_of(ElementType::f32, whole_count_));
  show_gradients(whole_gradients_);
}

void ShardedUnit::pack_gradients(void* to, bool flag) {
  const auto type = options_.precision.reduction;
  if (options_.has_flag) raised_.write(0, flag ? 1 : 0);
  for (int part = 0; part < parts(); ++part) {
    const auto begin = part * part_count_;
    for (const auto& entry : entries_) {
      const auto rows = rows_of_part(entry.shape.at(0), parts(), part);
      const auto count = rows.count * entry.columns;
      const auto padded = rows_of_part(entry.shape.at(0), parts(), 0).count * entry.columns;
      store_numbers(device_, type, to, begin + entry.place_in_part,
                    entry.whole->gradient.data() + rows.first * entry.columns, count);
      store_zeros(device_, type, to, begin + entry.place_in_part + count, padded - count);
    }
    if (options_.has_flag) store_numbers(device_, type, to, begin + part_count_ - 1, raised_.data(), 1);
  }
}

void ShardedUnit::start_reduce(bool flag) {
  if (gradients_in_place()) {
    if (options_.has_flag) own_gradients_.write(part_count_ - 1, flag ? 1 : 0);
    replicating_ = groups_.replicate.all_reduce(
        buffer_of(own_gradients_, ElementType::f32, part_count_).named(gradients_name_),
        worker::ReduceOp::average);
    return;
  }
  const auto type = options_.precision.reduction;
  to_reduce_ = pools_.wholes.take(bytes_of(type, part_count_ * parts()));
  pack_gradients(to_reduce_.data(), flag);
  for (auto& entry : entries_) entry.whole->gradient = Tensor();
  if (!options_.keep_whole) pools_.wholes.give_back(whole_gradients_);
  scattering_ = groups_.shard.reduce_scatter(
      buffer_of(to_reduce_, type, part_count_ * parts()),
      buffer_of(own_gradients_, type, part_count_).named(gradients_name_), worker::ReduceOp::average);
}

void ShardedUnit::finish_scatter() {
  if (!scattering_) return;
  wait_for(scattering_);
  pools_.wholes.give_back(to_reduce_);
  replicating_ = groups_.replicate.all_reduce(
      buffer_of(own_gradients_, options_.precision.reduction, part_count_).named(gradients_name_),
      worker::ReduceOp::average);
}

void ShardedUnit::finish_reduce() {
  finish_scatter();
  wait_for(replicating_);
  if (options_.precision.reduction != ElementType::f32) widen_own_gradients();
}

/// They were reduced in their own memory, which is large enough for any type: memory beside it would be held from the
/// first unit's reduction to the end of the step, for every unit, where copies of the state are averaged. So it takes a
/// copy, of one unit at a time.
void ShardedUnit::widen_own_gradients() {
  const auto type = options_.precision.reduction;
  const auto bytes = bytes_of(type, part_count_);
  auto narrow = pools_.parts.take(bytes);
  device_.copy(narrow.data(), own_gradients_.data(), static_cast<std::size_t>(bytes));
  load_numbers(device_, type, narrow.data(), 0, own_gradients_.data(), part_count_);
  pools_.parts.give_back(narrow);
}

bool ShardedUnit::flag_was_raised() const {
  return options_.has_flag && own_gradients_.read(part_count_ - 1) > 0;
}

std::int64_t ShardedUnit::kept_bytes() const {
  const auto kept = masters_.count() + own_gradients_.count() +
                    (options_.keep_whole ? whole_values_.count() + whole_gradients_.count() : 0);
  return bytes_of(ElementType::f32, kept);
}

}  // namespace muster::trainers
