// A job's policy as the channel and the journal carry it: one name and one value a field, as text, so that
// two agents that disagree can be told about what.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "rendezvous/core/policy.hpp"
#include "rendezvous/protocol/channel_messages.hpp"

namespace muster::rendezvous {

/// Who serves the worker store: no daemon looks at it, yet all nodes must have it alike.
inline constexpr const char* kWorkerStoreSetting = "worker_store";

/// Every field of the policy. Durations are exact to the millisecond.
std::vector<PolicyValue> policy_values(const JobPolicy& policy);

/// A field that is missing keeps its default; a name that does not exist, a value that cannot be read, or a
/// policy that is not valid is an error.
Result<JobPolicy> policy_from_values(const std::vector<PolicyValue>& values);

/// "nodes is 2:4 in the job and 3:4 on this node; max restarts is ..."; empty when they agree.
std::string differences(const std::vector<PolicyValue>& job, const std::vector<PolicyValue>& node);

}  // namespace muster::rendezvous
