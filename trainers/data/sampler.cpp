#include "trainers/data/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <stdexcept>

#include "trainers/tensor/random.hpp"

namespace muster::trainers {
namespace {

/// Epochs' streams lie beyond those of the layers' initial values.
constexpr std::uint64_t kFirstEpochStream = std::uint64_t{1} << 32;

/// Fisher and Yates' shuffle, from the back.
void shuffle(std::vector<std::uint32_t>& entries, Random random) {
  for (std::size_t i = entries.size(); i > 1; --i) std::swap(entries[i - 1], entries[random.below(i)]);
}

}  // namespace

DistributedSampler::DistributedSampler(SamplerOptions options)
    : options_(options), permutation_(static_cast<std::size_t>(options.count)) {
  assert(options.rank >= 0 && options.rank < options.world_size);
  if (options.count < options.world_size) {
    throw std::invalid_argument(
        fmt::format("the data set has {} samples for {} workers, expected at least one for each",
                    options.count, options.world_size));
  }
}

void DistributedSampler::start(std::int64_t epoch, std::int64_t position) {
  assert(position >= 0 && position <= options_.count);
  std::iota(permutation_.begin(), permutation_.end(), 0U);
  if (options_.order == Order::shuffled) {
    shuffle(permutation_, Random(options_.seed, kFirstEpochStream + static_cast<std::uint64_t>(epoch)));
  }
  position_ = position;
  end_ = options_.count;
  const auto tail = (options_.count - position) % options_.world_size;
  if (tail > 0 && options_.tail != Tail::uneven) end_ -= tail;
  if (tail > 0 && options_.tail == Tail::pad) end_ += options_.world_size;
}

std::span<const std::uint32_t> DistributedSampler::next_of_world(std::int64_t entries) {
  assert(options_.tail == Tail::uneven || entries % options_.world_size == 0);
  taken_ = std::min(entries, end_ - position_);
  repeats_ = 0;
  batch_.clear();
  for (auto entry = position_ + options_.rank; entry < position_ + taken_; entry += options_.world_size) {
    batch_.push_back(permutation_[static_cast<std::size_t>(entry % options_.count)]);
    if (entry >= options_.count) ++repeats_;
  }
  position_ += taken_;
  return batch_;
}

std::int64_t DistributedSampler::batches_left(std::int64_t batch_size) const {
  const auto entries = batch_size * options_.world_size;
  return (end_ - position_ + entries - 1) / entries;
}

}  // namespace muster::trainers
