// Transcripts: text files of what happens to a job and what it answers, reviewed as text. Lines that begin
// with
// '>' happen; the lines below are the job's answers; '#' explains.
//
//   > nodes MIN:MAX [restarts=N] [last-call=D] [drain=D] [barrier=D] [cooldown=D] [changes=N] [chaos]
//                                                            first line of all
//   > NODE joins [workers=N] [rank=N] [endpoint] [anew]      'anew': another process of the same node
//     [after=N]                                              the newest round that it was in, with what it was told of its end
//   > NODE fails [exit=N | signal=N] [lived=D] [ago=D]       its first worker
//   > NODE makes a step                                     a worker of it says so
//   > NODE is safe | has stopped | has succeeded | leaves | is stopped and joins
//   > NODE resumes [round=N place=N of=N]                    by default what it was last assigned
//   > NODE is cut | is broken off | is silent
//   > D passes                                               e.g. 500ms, 30s, 10m; wakes the job when it asks
//   > operator closes the roster | drains NODE | scales to MIN:MAX | pardons NODE | stops the job
//   > operator kills rank N | terminates NODE                rehearses a fault
//   > daemon restarts | daemon forgets                       with and without its journal
//   > why                                                    the job's present reason
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/core/job.hpp"

namespace muster::rendezvous {

class Scenario {
 public:
  /// The same text with the job's answers in place of those that stand there.
  std::string replay(const std::string& text);

 private:
  using Words = std::vector<std::string>;

  void happen(const std::string& line);
  void make_job(const Words& words);
  void node_does(const NodeId& node, const std::string& what, const Words& words);
  void operator_does(const std::string& what, const Words& words);
  void joins(const NodeId& node, const Words& words);
  void fails(const NodeId& node, const Words& words);
  void resumes(const NodeId& node, const Words& words);
  void pass(Duration time);
  void restart(bool with_memory);
  void say(const NodeId& node, AgentMessage message);
  void step(const Event& event);
  void print(const Effect& effect);

  struct Told {
    int round = 0;
    int restarts = 0;
    std::string why;
  };
  struct Known {
    NodeOffer offer;
    Assignment assignment;
    Told told;  ///< of the end of the newest round
  };

  JobPolicy policy_;
  std::unique_ptr<Job> job_;
  Instant now_ = Instant(std::chrono::hours(24));
  std::map<NodeId, Known> nodes_;
  std::string out_;
};

}  // namespace muster::rendezvous
