// The parts of which reasons are made.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

/// "1 node", "3 nodes".
std::string count_of(int n, const std::string& noun);

/// "n1", "n1 and n2", "n1, n2 and n3", and from 9 names on "n1, ..., n8 and 4 more".
std::string names_of(const std::vector<NodeId>& some, int total);

/// "2" or "2 to 4".
std::string range_of(int low, int high);

/// "1 node", "2 nodes", "2 to 4 nodes".
std::string nodes_of(int low, int high);

/// "was killed by SIGKILL", "exited with code 3", with what else is known.
std::string how_it_ended(const ExitCause& cause);

/// "rank 5 on n3 was killed by SIGKILL".
std::string what_failed(const WorkerFailure& failure);

/// "rank 5 (SIGKILL)": one line of the list of restarts.
std::string short_failure(const WorkerFailure& failure);

constexpr int max_names_in_sentence = 8;

}  // namespace muster::rendezvous
