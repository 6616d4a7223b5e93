// A job on the daemon as JSON, for musterctl and HTTP alike.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rendezvous/server/hosted_job.hpp"

namespace muster::rendezvous {

using Json = nlohmann::ordered_json;

/// Texts of peers may hold anything: what is no UTF-8 is replaced.
std::string dump(const Json& json);

/// One line of a list.
Json summary_json(const HostedJob& job);
/// The same with members, rounds and policy.
Json status_json(const HostedJob& job);
Json events_json(const HostedJob& job);

}  // namespace muster::rendezvous
