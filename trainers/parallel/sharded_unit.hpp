// A unit's parameters, of which this rank keeps its rows, and the two things that are done with them: put together from
// all ranks before they are used, and their gradients added up and taken apart again afterwards.
//
// This rank's part of the values and of the gradients is one block each, in float32: the master copy, which the
// optimizer sees as one parameter of fewer rows for each whole one. A whole unit is one block too, laid out so that
// collectives read and write it in place (unit_layout.hpp), narrower numbers included: values arrive at its end and are
// widened from there, gradients are narrowed to its beginning. So nothing of a unit's size is held beside the values and
// the gradients.
//
//   start_gather() .. gather() .. the layers compute .. release()
//   make_room() .. the layers write gradients .. start_reduce() .. finish_scatter() .. finish_reduce()
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainers/parallel/block_pool.hpp"
#include "trainers/parallel/precision.hpp"
#include "trainers/parallel/shard.hpp"
#include "trainers/parallel/strategy.hpp"
#include "trainers/parallel/unit_layout.hpp"

namespace muster::trainers {

struct UnitOptions {
  MixedPrecision precision;
  bool keep_values = false;     ///< whole values have memory of their own, which is not given back
  bool keep_gradients = false;  ///< so have whole gradients
  Flag flag = Flag::none;       ///< one more number travels with the gradients
};

class ShardedUnit {
 public:
  /// Takes over the parameters' values: from here on rank 0's are everyone's. A collective call. All must outlive it.
  ShardedUnit(const std::vector<Parameter*>& parameters, ShardingGroups groups, UnitOptions options,
              UnitPools& pools);
  ~ShardedUnit();
  ShardedUnit(const ShardedUnit&) = delete;
  ShardedUnit& operator=(const ShardedUnit&) = delete;

  /// Has the values of all ranks come here, in the background. Nothing if they are here or on their way.
  void start_gather();
  /// The layers' parameters are whole now.
  void gather();
  /// As gather(), with the master copy itself instead of what layers compute with. Ends with release().
  void gather_masters();
  /// Frees the whole values; the next gather() fetches new ones.
  void release();

  /// Memory for whole gradients, unless they have it. The next backward pass overwrites them or adds to them.
  void make_room();
  /// The gradients are complete: has them averaged over all ranks, in the background. `flag` as Parallelism has it.
  void start_reduce(bool flag);
  /// What start_reduce() read is free again: may be called before finish_reduce(), to have the memory soon.
  void finish_scatter();
  /// This rank's rows of the average gradients are in its shards.
  void finish_reduce();
  /// After finish_reduce(): some rank had given true.
  bool flag_was_raised() const;

  const std::vector<ParameterShard>& shards() const { return shards_; }
  const UnitLayout& layout() const { return layout_; }
  std::int64_t kept_bytes() const;  ///< values and gradients that stay in memory

 private:
  using Works = std::vector<std::shared_ptr<worker::Work>>;
  struct Entry {
    Parameter* whole;
    std::unique_ptr<Parameter> shard;
  };
  /// One message's names in errors: "values of 0.weight".
  struct Names {
    std::string values;
    std::string gradients;
  };

  void take_over(const std::vector<Parameter*>& parameters);
  void name_messages();
  void share_initial_values();
  void cut();
  void show_values(const Tensor& block);
  void show_gradients(const Tensor& block);
  void start_gather_as(worker::ElementType type);
  void finish_gather_as(worker::ElementType type);
  void unpack_values();
  void pack_gradients(bool flag);
  void fill_up(const UnitLayout::Entry& entry);
  void* own_gradients_as_reduced();
  void start_replicating();
  worker::Buffer buffer_of_part(void* block, worker::ElementType type, std::int64_t place,
                                std::int64_t count) const;
  int parts() const { return groups_.shard.size(); }
  bool alone() const { return parts() == 1; }
  /// The whole values are the master copy itself; the gradients are reduced where they are written.
  bool values_in_place() const {
    return alone() && options_.precision.parameters == worker::ElementType::f32;
  }
  bool gradients_in_place() const {
    return alone() && options_.precision.reduction == worker::ElementType::f32;
  }

  ShardingGroups groups_;
  UnitOptions options_;
  UnitPools& pools_;
  Device& device_;
  UnitLayout layout_;
  std::vector<Entry> entries_;  ///< as the layout's
  std::vector<Names> names_;    ///< of its messages
  std::string own_gradients_name_;
  std::vector<ParameterShard> shards_;

  Tensor masters_;        ///< this rank's part of the values
  Tensor own_gradients_;  ///< and of the gradients; while they are reduced, in the type that they travel in
  Tensor raised_;         ///< the flag, as it is packed
  Tensor whole_values_;   ///< empty while they are neither here nor on their way, unless kept
  Tensor whole_gradients_;
  bool gathered_ = false;

  // What is on its way.
  Tensor outgoing_;   ///< this rank's part of the values, as it travels
  Works gathering_;   ///< into whole_values_
  Works scattering_;  ///< from whole_gradients_ into own_gradients_
  Works replicating_;
};

}  // namespace muster::trainers
