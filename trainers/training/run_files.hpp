// The first and the last things of a run: its files, and whether it was a success.
#pragma once

#include "trainers/tensor/parameter.hpp"
#include "trainers/training/options.hpp"

namespace muster::trainers {

/// What the user may have got wrong, before anyone waits for anyone: initial parameters are loaded (--init), files that
/// are to be written are looked at; options that have no effect are told. For rank 0. Throws std::invalid_argument.
void prepare_files(const TrainerOptions& options, const std::vector<Parameter*>& parameters,
                   const Report& report);

/// Rank 0 exports, if that is asked for. Throws PermanentError if it cannot: training again would only end there again;
/// it says where the trained parameters are.
void export_result(const TrainerOptions& options, const std::vector<Parameter*>& parameters, const Fit& fit,
                   Report& report);

/// Throws PermanentError, which says where the trained parameters are, if a line of the metrics is missing.
void check_metrics(const TrainerOptions& options, const Fit& fit, const Report& report);

/// Tells if the last state should have been saved and is not; throws PermanentError if it had to be.
void check_last_checkpoint(const TrainerOptions& options, const Fit& fit, const Report& report);

}  // namespace muster::trainers
