#include "trainers/parallel/ddp.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "trainers/parallel/block_pool.hpp"
#include "trainers/parallel/clipping.hpp"
#include "trainers/parallel/tensor_buffer.hpp"

namespace muster::trainers {
void broadcast(worker::ProcessGroup& group, std::span<Tensor* const> tensors, int root) {
  std::vector<std::shared_ptr<worker::Work>> under_way;
  for (auto* tensor : tensors) {
    under_way.push_back(group.broadcast(buffer_of(*tensor), root));
  }
  for (auto& work : under_way) work->wait();
}

bool DataParallel::Bucket::full() const {
  return std::all_of(ready.begin(), ready.end(), [](bool r) { return r; });
}

DataParallel::DataParallel(std::vector<Parameter*> parameters, worker::ProcessGroup& group,
                           BucketLimits limits)
    : group_(group) {
  std::vector<Tensor*> values;
  for (auto* parameter : parameters) values.push_back(&parameter->value);
  broadcast(group_, values, 0);
  build_buckets(parameters, limits);
}

DataParallel::~DataParallel() {
  for (auto& bucket : buckets_) {
    for (auto* parameter : bucket.parameters) parameter->on_gradient_ready = nullptr;
    if (bucket.work && !bucket.work->done()) keep_until_the_process_ends(bucket.gradients);
  }
}

void DataParallel::build_buckets(const std::vector<Parameter*>& parameters, BucketLimits limits) {
  const std::vector<Parameter*> ready_order(parameters.rbegin(), parameters.rend());
  std::vector<std::int64_t> sizes_bytes;
  for (const auto* parameter : ready_order) {
    sizes_bytes.push_back(parameter->value.count() * static_cast<std::int64_t>(sizeof(float)));
  }
  for (const auto& places : plan_buckets(sizes_bytes, limits)) {
    Bucket bucket;
    std::int64_t count = 0;
    for (auto place : places) {
      bucket.parameters.push_back(ready_order[place]);
      count += ready_order[place]->value.count();
    }
    bucket.name = numbers_of("gradients", bucket.parameters);
    const bool is_last = bucket.parameters.back() == parameters.front();
    bucket.gradients = Tensor({count + (is_last ? 1 : 0)}, bucket.parameters.front()->value.device());
    if (is_last) flag_ = Tensor::part_of(bucket.gradients, count, {1});
    bucket.ready.assign(places.size(), false);
    buckets_.push_back(std::move(bucket));
  }
  for (auto& bucket : buckets_) {  // their addresses no longer change
    std::int64_t offset = 0;
    for (std::size_t place = 0; place < bucket.parameters.size(); ++place) {
      auto& parameter = *bucket.parameters[place];
      parameter.gradient = Tensor::part_of(bucket.gradients, offset, parameter.value.shape());
      offset += parameter.value.count();
      parameter.on_gradient_ready = [this, &bucket, place](Parameter&) { mark_ready(bucket, place); };
    }
  }
}

void DataParallel::mark_ready(Bucket& bucket, std::size_t place) {
  if (bucket.ready[place]) {
    throw std::logic_error(bucket.parameters[place]->name +
                           ": a second gradient before finish_gradients() took the first");
  }
  bucket.ready[place] = true;
  if (in_no_sync_) return;
  while (next_to_start_ < buckets_.size() && buckets_[next_to_start_].full()) {
    auto& full = buckets_[next_to_start_++];
    full.work = group_.all_reduce(buffer_of(full.gradients).named(full.name), worker::ReduceOp::average);
  }
}

void DataParallel::check_all_ready() const {
  std::string missing;
  for (const auto& bucket : buckets_) {
    for (std::size_t place = 0; place < bucket.parameters.size(); ++place) {
      if (!bucket.ready[place]) missing += (missing.empty() ? "" : ", ") + bucket.parameters[place]->name;
    }
  }
  if (missing.empty()) return;
  throw std::logic_error("no gradient for " + missing +
                         " in this step: every parameter must be used in every backward pass");
}

void DataParallel::raise_flag(bool raised) {
  if (flag_.count() > 0) flag_.write(0, raised ? 1 : 0);
}

/// Forgets which gradients were given.
void DataParallel::next_pass(Into into) {
  for (auto& bucket : buckets_) {
    bucket.ready.assign(bucket.ready.size(), false);
    for (auto* parameter : bucket.parameters) parameter->into = into;
  }
}

void DataParallel::no_sync(const std::function<void()>& pass) {
  {
    struct Mode {
      bool& on;
      explicit Mode(bool& mode) : on(mode) { on = true; }
      ~Mode() { on = false; }
    } const mode(in_no_sync_);
    pass();
  }
  check_all_ready();
  next_pass(Into::add);
}

double DataParallel::clip_gradients(double max_norm) {
  std::vector<Parameter*> all;
  for (const auto& bucket : buckets_)
    all.insert(all.end(), bucket.parameters.begin(), bucket.parameters.end());
  const double norm = std::sqrt(sum_of_squares(all));
  shorten_gradients(all, norm, max_norm);
  return norm;
}

void DataParallel::finish_gradients() {
  check_all_ready();
  for (auto& bucket : buckets_) {
    bucket.work->wait();
    bucket.work = nullptr;
  }
  next_pass(Into::overwrite);
  next_to_start_ = 0;
  flag_was_raised_ = flag_.count() > 0 && flag_.read(0) > 0;
}

}  // namespace muster::trainers
