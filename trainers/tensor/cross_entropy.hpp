// The mean over the batch of -log(softmax(logits)[label]), as torch.nn.CrossEntropyLoss.
#pragma once

#include <cstdint>
#include <span>

#include "trainers/tensor/tensor.hpp"

namespace muster::trainers {

/// logits (batch, classes), one label in [0, classes) for each row. Returns the mean loss, and in
/// `logits_gradient` (resized) its gradient: (softmax - one-hot) / batch. Each row's greatest logit is
/// subtracted first, so that no exponential overflows. 0 for no rows at all.
double softmax_cross_entropy(const Tensor& logits, std::span<const std::uint8_t> labels,
                             Tensor& logits_gradient);

/// How many rows have their greatest logit (the first of equals) at the label.
std::int64_t count_correct(const Tensor& logits, std::span<const std::uint8_t> labels);

}  // namespace muster::trainers
