// Data parallelism: every rank holds the whole model and computes on its own part of the batch; the gradients
// are averaged over all ranks before the optimizer's step, so that all replicas stay the same.
//
// The gradients lie in buckets (buckets.hpp). As soon as the backward pass has filled one, its all-reduce
// starts and runs while the layers before are still being computed. A bucket starts only after those before
// it, so every rank makes the same calls in the same order.
//
//   DataParallel ddp(model.parameters(), group);      // from here on rank 0's values are everyone's
//   model.backward(...);                              // starts all-reduces as buckets fill
//   ddp.finish_gradients();                           // waits for them
//   optimizer.step();
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/worker/process_group.hpp"
#include "trainers/parallel/buckets.hpp"
#include "trainers/parallel/parallelism.hpp"
#include "trainers/tensor/parameter.hpp"

namespace muster::trainers {

/// The root's numbers on every rank: one broadcast for each tensor, all under way together.
void broadcast(worker::ProcessGroup& group, std::span<Tensor* const> tensors, int root);

class DataParallel final : public Parallelism {
 public:
  /// Broadcasts the values, puts the gradients into buckets and hooks itself into the parameters. Parameters
  /// and group must outlive it; `parameters` are in order of use.
  DataParallel(std::vector<Parameter*> parameters, worker::ProcessGroup& group, BucketLimits limits = {});
  /// Unhooks itself. If an all-reduce is still under way (an exception came between), its bucket's memory is
  /// kept until the process ends, because the backend may still write there; waiting could take as long as a
  /// collective's timeout.
  ~DataParallel() override;

  void finish_gradients() override;
  void no_sync(const std::function<void()>& pass) override;
  double clip_gradients(double max_norm) override;
  void raise_flag(bool raised) override;
  bool flag_was_raised() const override { return flag_was_raised_; }

  std::size_t bucket_count() const { return buckets_.size(); }

 private:
  struct Bucket {
    Tensor gradients;  ///< its parameters' gradients are parts of this
    std::vector<Parameter*> parameters;
    std::string name;         ///< "gradients of ..."
    std::vector<bool> ready;  ///< which gradients this pass has given
    std::shared_ptr<worker::Work> work;

    bool full() const;
  };

  void build_buckets(const std::vector<Parameter*>& parameters, BucketLimits limits);
  void mark_ready(Bucket& bucket, std::size_t place);
  void check_all_ready() const;
  void next_pass(Into into);

  worker::ProcessGroup& group_;
  std::vector<Bucket> buckets_;
  Tensor flag_;  ///< behind the last bucket's gradients
  bool flag_was_raised_ = false;
  bool in_no_sync_ = false;
  std::size_t next_to_start_ = 0;
};

}  // namespace muster::trainers
