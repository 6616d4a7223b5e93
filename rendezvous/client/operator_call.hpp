// One question of an operator to a daemon, and its answer.
#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/time.hpp"
#include "rendezvous/protocol/authentication.hpp"
#include "rendezvous/protocol/channel_messages.hpp"
#include "rendezvous/protocol/tls.hpp"

namespace muster::rendezvous {

/// Blocks until the answer is here, at most `limit` in all. `token` and `tls` may be null.
Result<OperatorReply> ask_daemon(const Endpoint& endpoint, const Token* token,
                                 const std::shared_ptr<Tls>& tls, const OperatorRequest& request,
                                 Duration limit);

}  // namespace muster::rendezvous
