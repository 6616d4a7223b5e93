// How this node's part of the job does right now, for whoever asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace muster::agent {

enum class AgentState {
  waiting,   ///< for a round
  running,   ///< workers work
  draining,  ///< workers save before the round ends, or have finished here and the other nodes have not
  stopping,  ///< workers were told to leave, or have left
  ended
};

const char* word_for(AgentState state);

struct WorkerVitals {
  int rank = 0;
  int local_rank = 0;
  int pid = 0;
  bool alive = false;
  std::int64_t step = -1;                  ///< the last one it told; -1: none
  std::optional<Duration> since_progress;  ///< of those that told one in this round
  bool stuck = false;                      ///< it works, and told of no step for longer than is allowed
};

struct Vitals {
  AgentState state = AgentState::waiting;
  std::string why;  ///< what it waits for, as a sentence
  int round = 0;    ///< the newest; 0: there was none yet
  int world_size = 0;
  int restart_count = 0;
  std::vector<WorkerVitals> workers;  ///< of the round that runs

  bool healthy() const;
};

}  // namespace muster::agent
