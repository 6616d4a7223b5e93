// Texts of any length over a process group.
#pragma once

#include <string>
#include <vector>

#include "muster/worker/process_group.hpp"

namespace muster::worker {

/// The root's text on every rank.
std::string broadcast_text(ProcessGroup& group, std::string text, int root);

/// The root's texts, however many, on every rank.
std::vector<std::string> broadcast_texts(ProcessGroup& group, const std::vector<std::string>& texts,
                                         int root);

/// Every rank's text on every rank, in the order of the ranks.
std::vector<std::string> exchange_texts(ProcessGroup& group, const std::string& text);

}  // namespace muster::worker
