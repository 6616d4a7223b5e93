// Whether the ranks that write into one folder do: the same path may be another disk on each node.
#pragma once

#include <filesystem>
#include <string>

#include "muster/worker/process_group.hpp"
#include "worker_sdk/src/checkpoint_index.hpp"

namespace muster::worker {

/// Of a network file system that still answers from what it remembers, both take up to a second.

/// Nothing if rank `writer`'s part is in `checkpoint` as it was told, else "rank 2's part ... is not in ..., as rank 0
/// sees it: ...".
std::string missing_part(const std::filesystem::path& checkpoint, const IndexedPart& part, int writer);

/// Collective: the same answer on every rank. "FOLDER: ranks 1, 2 do not see what rank 0 writes there: ..." of those
/// that call with `looks`. Nothing if there are none, or if it cannot be told: rank 0 has no such folder or may not
/// write into it.
std::string why_not_shared(ProcessGroup& group, const std::filesystem::path& folder, std::int64_t generation,
                           bool looks);

}  // namespace muster::worker
