// The batches of each step, made ready while the step before is computed.
//
// A thread of its own asks the sampler, gathers the samples and turns them into numbers, up to `prefetch` steps ahead;
// without prefetching the same is done in `next`. What comes out does not depend on it.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "trainers/data/dataset.hpp"
#include "trainers/data/sampler.hpp"

namespace muster::trainers {

struct LoaderOptions {
  std::int64_t global_batch = 64;  ///< samples a step of all ranks together
  /// A rank's part of a step is cut into pieces of at most so many samples, one forward and backward pass each; as many
  /// pieces on every rank.
  std::int64_t piece_size = 64;
  int prefetch = 2;  ///< steps; 0: no thread
};

struct StepBatch {
  struct Piece {
    Batch batch;  ///< may be empty, where the samples do not divide
    double weight =
        1;  ///< of its mean loss, so that the mean over all ranks of the pieces' sums is that of the batch
  };
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> indices;  ///< this rank's, of all pieces
  std::int64_t repeats = 0;            ///< how many of them are repeated ones, that fill the epoch's tail
  std::int64_t world_samples = 0;      ///< of all ranks
  std::int64_t position = 0;           ///< of the epoch, after this step
  bool ends_epoch = false;
};

class Loader {
 public:
  /// The data set must outlive it.
  Loader(const Dataset& dataset, SamplerOptions sampler, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Starts or resumes an epoch; what was made ready of another one is thrown away.
  void start(std::int64_t epoch, std::int64_t position);
  /// The next step's, nothing at the epoch's end. Valid until the next call. Rethrows what the data set threw.
  StepBatch* next();

 private:
  bool make(StepBatch& step);
  void work(const std::stop_token& stop);
  void stop_thread();
  StepBatch* take_ready();

  const Dataset& dataset_;
  DistributedSampler sampler_;
  LoaderOptions options_;
  StepBatch current_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<StepBatch> ready_;   ///< at most `prefetch`
  std::vector<StepBatch> spare_;  ///< used ones, whose memory is used again
  bool exhausted_ = false;        ///< no more of this epoch will become ready
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace muster::trainers
