// What an operator may ask of the daemon, and the JSON that answers it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "rendezvous/protocol/channel_messages.hpp"
#include "rendezvous/server/hosted_job.hpp"

namespace muster::rendezvous {

using JobTable = std::map<std::string, std::shared_ptr<HostedJob>>;

/// status, events: the named job or all. Everything else: the named job, or the only one there is.
OperatorReply answer_operator(const JobTable& jobs, const OperatorRequest& request);

}  // namespace muster::rendezvous
