// Where the logs and status.json of one run lie.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "launcher/options.hpp"

namespace muster::launcher {

/// "3f9a01c2": 8 hexadecimal digits, so that two jobs started at the same moment are told apart.
std::string fresh_run_id();

/// A run id as one harmless folder name: what is not a letter, digit, '.', '_' or '-' becomes '_'.
std::string folder_name_of(const std::string& run_id);

/// TEMPORARY/muster-UID, made if it is missing. In a folder that everybody may write to, somebody else may have
/// made ours first: that is an error.
Result<std::filesystem::path> own_temporary_folder(const std::filesystem::path& temporary);

/// --rdzv-id; without it a fresh one, or for more than one node "none", as torchrun's: all have to agree.
std::string run_id_of(const LauncherOptions& options);

struct RunFolder {
  std::filesystem::path path;  ///< empty: no logs are kept
  UniqueFd
      lock;  ///< holds the folder until this process and those it forked have ended; none where it cannot be
  std::string note;  ///< for the user, if it is not the folder that was asked for; may be empty
};

/// The folder, made if it is missing; below it come round-N/rank-R. Empty for --log-dir=/dev/null.
///   --log-dir D   D/RUN-ID, and with more than one node D/RUN-ID/NODE. {job}, {node} and {host} in D stand for
///                 themselves, and what D names so is not added; ${NAME} is a variable
///   else          PLACE/muster-UID/RUN-ID-XXXXXX, new and for this user's eyes alone, in the first of temporary_places()
///                 where it can be made; the note says which could not and why. Empty, with a note, if there is none
///
/// A folder that a live job holds is left to it: this one takes FOLDER-2 and so on, and the note says who holds the
/// first. (Refusing would end jobs that torchrun runs: there each run has a folder of its own.)
Result<RunFolder> make_run_folder(const LauncherOptions& options, const std::string& run_id,
                                  const std::string& node, const Environment& environment);

/// Its path if nobody holds it, and nothing is made; "XXXXXX" stands for what is fresh.
Result<std::filesystem::path> expected_run_folder(const LauncherOptions& options, const std::string& run_id,
                                                  const std::string& node, const Environment& environment);

}  // namespace muster::launcher
