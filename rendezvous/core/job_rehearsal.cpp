// Faults that an operator sends into a job on purpose: whom they reach, and why not.
#include <fmt/format.h>

#include <algorithm>

#include "rendezvous/core/job.hpp"
#include "rendezvous/core/rehearsal.hpp"
#include "rendezvous/core/sentences.hpp"

namespace muster::rendezvous {

/// Allowed in every phase: what breaks while workers save or a round is formed is worth rehearsing, too.
void Job::on(const Rehearse& event) {
  if (over()) return answer(false, reason(now_));
  if (!policy_.allow_chaos)
    return answer(false, fmt::format("job {} was not started for rehearsals: give all its launchers "
                                     "--rdzv-conf=allow_chaos=true",
                                     id_));
  const auto victim = event.rank ? Victim::worker : Victim::agent;
  if (const auto wrong = wrong_rehearsal_signal(victim, event.signal_number))
    return answer(false, wrong->sentence());
  NodeId node = event.node;
  bool has_process = true;  // as far as is known here
  if (event.rank) {
    if (!round_) return answer(false, "no round runs now: " + reason(now_));
    const Seat* seat = seat_of_rank(*event.rank);
    if (!seat) return answer(false, no_such_rank(*event.rank));
    node = seat->node;
    if (seat->gone) return answer(false, fmt::format("rank {} was on {}, which is gone", *event.rank, node));
    if (seat->stopped || seat->succeeded || (seat->failed && seat->local_workers == 1))
      return answer(
          false, fmt::format("rank {} on {} has no process any more: {}", *event.rank, node, reason(now_)));
    has_process = phase_ != Phase::stopping && !seat->failed;
  }
  const Member* member = members_.find(node);
  if (!member) return answer(false, fmt::format("{} is not in job {}", node, id_));
  if (!member->connected()) return answer(false, fmt::format("{} is away ({})", node, member->away_reason));
  const std::string signal = signal_name(event.signal_number);
  const std::string whom =
      event.rank ? fmt::format("rank {} on {}", *event.rank, node) : "the launcher of " + node;
  answer(true, fmt::format("{} goes to {}", signal, whom),
         has_process
             ? fmt::format("an operator sent {} to {} (musterctl chaos)", signal, whom)
             : fmt::format("an operator asked {} to send {} to rank {} if it still runs (musterctl chaos)",
                           node, signal, *event.rank));
  tell(node, Inject{event.rank, event.signal_number});
}

/// Null: nobody has it, or a node of an adopted round that has not spoken yet.
const Seat* Job::seat_of_rank(int rank) const {
  const auto& seats = round_->state().seats;
  const auto found = std::find_if(seats.begin(), seats.end(), [rank](const Seat& seat) {
    return rank >= seat.first_rank && rank - seat.first_rank < seat.local_workers;
  });
  return found == seats.end() ? nullptr : &*found;
}

std::string Job::no_such_rank(int rank) const {
  if (round_->unclaimed() > 0)
    return fmt::format("nobody has said yet who has rank {}: {}", rank, unclaimed_reason());
  int last = 0;  // the world of an adopted round is known from its seats alone
  int silent = 0;
  for (const Seat& seat : round_->state().seats) {
    last = std::max(last, seat.first_rank + seat.local_workers - 1);
    silent += seat.node.empty();
  }
  if (silent > 0)
    return fmt::format("nobody has said who had rank {}: {} of {} of round {} {} gone without a word of it",
                       rank, silent, count_of(round_->size(), "node"), round_->number(),
                       silent == 1 ? "is" : "are");
  return fmt::format("round {} has no rank {}: {}", round_->number(), rank,
                     last == 0 ? "its only one is 0" : fmt::format("its ranks are 0 to {}", last));
}

}  // namespace muster::rendezvous
