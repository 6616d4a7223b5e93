// Which samples a rank trains on, and in which order: torch.utils.data.DistributedSampler's semantics, and a
// position that survives a change of the world's size.
//
// An epoch is one permutation of [0, count), the same on every rank; it depends on seed and epoch alone.
// (Without shuffling it is 0, 1, 2, ...; then the indices are PyTorch's, one for one.) The world eats it from
// the front: batch k takes the next world_size x batch_size entries, of which rank r gets every world_size-th
// from the r-th on. The *position* is the number of entries eaten so far, by all ranks together.
//
// Nothing else has to be known to go on: at the same position, a world of any other size eats the rest of the
// same permutation. So over an epoch with restarts and rescales every sample is used exactly once, but for
// the tail below.
//
// The tail: what is left from the position where this world started may not divide by the world's size. `pad`
// repeats entries from the permutation's front until it does (each rank then has the same number of steps,
// and no collective is left waiting); `drop` leaves the rest out; `uneven` gives some ranks one entry more than others
// in a batch, and in the last one perhaps none at all, so that nothing is repeated or left out: whoever averages over
// the ranks has to weigh them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster::trainers {

enum class Order : std::uint8_t { sequential, shuffled };
enum class Tail : std::uint8_t { pad, drop, uneven };

struct SamplerOptions {
  std::int64_t count = 0;  ///< samples in the data set; at least world_size
  int world_size = 1;
  int rank = 0;
  std::uint64_t seed = 0;
  Order order = Order::shuffled;
  Tail tail = Tail::pad;
};

class DistributedSampler {
 public:
  /// Throws std::invalid_argument for a data set smaller than the world.
  explicit DistributedSampler(SamplerOptions options);

  /// Starts or resumes an epoch; `position` is in [0, count].
  void start(std::int64_t epoch, std::int64_t position = 0);

  /// This rank's part of the next batch: `batch_size` indices, fewer at the epoch's end (as many on every
  /// rank, but for an uneven tail), none after it. Valid until the next call.
  std::span<const std::uint32_t> next(std::int64_t batch_size) {
    return next_of_world(batch_size * options_.world_size);
  }
  /// The same for a batch of `entries` of all ranks together; a multiple of the world's size unless the tail is uneven.
  std::span<const std::uint32_t> next_of_world(std::int64_t entries);
  /// Of the last batch: entries of all ranks together, and how many of this rank's are repeated ones.
  std::int64_t entries_taken() const { return taken_; }
  std::int64_t repeats() const { return repeats_; }

  /// Entries of the permutation that the world has eaten; count once the epoch is over.
  std::int64_t position() const { return position_ < options_.count ? position_ : options_.count; }
  bool epoch_is_over() const { return position_ >= end_; }
  /// Batches that `next` would still give.
  std::int64_t batches_left(std::int64_t batch_size) const;

  const SamplerOptions& options() const { return options_; }

 private:
  SamplerOptions options_;
  std::int64_t position_ = 0;
  std::int64_t end_ = 0;  ///< where this world stops; beyond count if it pads
  std::int64_t taken_ = 0;
  std::int64_t repeats_ = 0;
  std::vector<std::uint32_t> permutation_;
  std::vector<std::uint32_t> batch_;
};

}  // namespace muster::trainers
