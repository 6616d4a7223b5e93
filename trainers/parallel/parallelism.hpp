// How the ranks' work on one model is put together: what the training loop needs of it, whichever kind it is.
//
//   model.forward(...); model.backward(...);          // each rank on its own part of the batch
//   parallelism.finish_gradients();                   // now they are those of the whole batch
//   optimizer.step();
//
// Every rank makes the same calls in the same order. They throw CollectiveError as Work::wait does.
#pragma once

#include <functional>

namespace muster::trainers {

class Parallelism {
 public:
  Parallelism() = default;
  Parallelism(const Parallelism&) = delete;
  Parallelism& operator=(const Parallelism&) = delete;
  virtual ~Parallelism() = default;

  /// After each backward pass: blocks until the gradients are the average over all ranks. Throws std::logic_error that
  /// names the parameters that got no gradient (without it, the others would wait for this rank's for ever).
  virtual void finish_gradients() = 0;

  /// Runs `pass`, one forward and one backward pass, of which the gradients stay on this rank; those of the next pass
  /// are added to them. So a large batch is made of k small ones at the communication of one: k - 1 passes in here,
  /// the last one outside and with finish_gradients(). Gradients are sums: each pass's loss is to be divided by k.
  virtual void no_sync(const std::function<void()>& pass) = 0;

  /// After finish_gradients(): if the gradient of the whole model, taken as one vector, is longer than `max_norm`,
  /// shortens it to that (Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks",
  /// 2013). Returns the length before; the same on every rank.
  virtual double clip_gradients(double max_norm) = 0;

  /// One bit that travels with the next step's gradients, at no message of its own. Before backward().
  virtual void raise_flag(bool raised) = 0;
  /// Some rank had raised its flag for the step that finish_gradients() ended: the same answer on every rank.
  virtual bool flag_was_raised() const = 0;
};

}  // namespace muster::trainers
