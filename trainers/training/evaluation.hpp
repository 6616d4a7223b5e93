// Accuracy and loss on a data set, computed by all ranks together: each takes its slice, the counts are added up.
// `device` is the one on which the model's parameters lie.
#pragma once

#include <cstdint>

#include "muster/worker/process_group.hpp"
#include "trainers/data/dataset.hpp"
#include "trainers/tensor/module.hpp"

namespace muster::trainers {

struct Accuracy {
  std::int64_t correct = 0;
  std::int64_t total = 0;

  double fraction() const {
    return total == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(total);
  }
};

/// The same answer on every rank. Every sample counts once, also if they do not divide by the world's size.
Accuracy evaluate(Module& model, const Dataset& dataset, worker::ProcessGroup& group,
                  Device& device = cpu_device());

/// Over all samples; the same on every rank.
double mean_loss(Module& model, const Dataset& dataset, worker::ProcessGroup& group,
                 Device& device = cpu_device());

}  // namespace muster::trainers
