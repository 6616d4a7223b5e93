// Ranks that do not run the same training find it out before their first collective hangs or mixes things up.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/worker/process_group.hpp"
#include "trainers/data/dataset.hpp"
#include "trainers/tensor/parameter.hpp"

namespace muster::trainers {

/// Names and what they are, as text: {"tensor 0.weight", "F32 (256, 784)"}, {"--batch-size", "64"}.
using Description = std::vector<std::pair<std::string, std::string>>;

Description describe(const std::vector<Parameter*>& parameters);
/// How many samples the set has ("training", "test"), how large they are, and what is in them.
Description describe(const std::string& set, const Dataset& data);

/// A collective call. Throws std::invalid_argument, the same on every rank, that names the first rank that differs from
/// rank 0, what differs, and both values.
void check_agreement(worker::ProcessGroup& group, const Description& description);
/// Of all that a training is made from: ranks that differ in it would wait for each other for ever, or train on without a
/// word to something that is nobody's.
void check_agreement(worker::ProcessGroup& group, const Description& options,
                     const std::vector<Parameter*>& parameters, const Dataset& train, const Dataset& test);

}  // namespace muster::trainers
