// Changes to what workers inherit: --env, --env-file and --scrub-env. What muster gives them itself comes after.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace muster::launcher {

struct VariableChanges {
  std::vector<std::pair<std::string, std::string>>
      added;                          ///< name and value; of one name the last one counts
  std::vector<std::string> scrubbed;  ///< globs of names
};

/// "NAME=VALUE". A name that muster gives to each worker itself is refused.
Result<void> add_variable(VariableChanges& changes, const std::string& text);

/// A file of such lines, values as they are up to the line's end; empty lines and those that begin with # are passed
/// over; at most 1 MiB. The error names file and line.
Result<void> add_variables_of(VariableChanges& changes, const std::filesystem::path& file);

/// "SLURM_*" or "SLURM_*,PMI_*".
Result<void> add_scrubbed(VariableChanges& changes, const std::string& globs);

/// Entries are "NAME=value". First what is scrubbed goes, then what is added comes.
std::vector<std::string> changed(const std::vector<std::string>& inherited, const VariableChanges& changes);

/// Names among `inherited` that are scrubbed and not added again.
std::vector<std::string> scrubbed_names(const std::vector<std::string>& inherited,
                                        const VariableChanges& changes);

/// By its name: the value of such a variable is never printed.
bool looks_secret(const std::string& name);

inline constexpr const char* kHiddenValue = "***";

/// "NAME=***" if the name looks secret, else as it is.
std::string without_secret(const std::string& entry);

}  // namespace muster::launcher
