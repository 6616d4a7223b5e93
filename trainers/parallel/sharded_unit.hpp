// A unit's parameters, of which this rank keeps its rows, and the two things that are done with them: put together from
// all ranks before they are used, and their gradients added up and taken apart again afterwards.
//
// What travels is laid out part by part, a part being what one rank keeps: of each parameter ceil(rows / N) rows, the
// missing ones of the last parts as zeros. So one message moves a whole unit:
//
//   part 0                     part 1                            ...
//   | rows of p0 | rows of p1 | rows of p0 | rows of p1 (zeros) |
//
// This rank's part of the values and of the gradients is one block each, in float32: the master copy, which the
// optimizer sees as one parameter of fewer rows for each whole one.
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

namespace muster::trainers {

struct UnitOptions {
  MixedPrecision precision;
  bool keep_whole = false;  ///< whole values and gradients have memory of their own, which is not given back
  bool has_flag = false;    ///< one more number travels with the gradients
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
  std::int64_t whole_count() const { return whole_count_; }  ///< numbers in all parameters together
  std::int64_t kept_bytes() const;                           ///< values and gradients that stay in memory

 private:
  struct Entry {
    Parameter* whole;
    std::unique_ptr<Parameter> shard;
    Shape shape;
    std::int64_t columns;
    std::int64_t place_in_part;
    std::int64_t place_in_whole;
  };

  void lay_out(const std::vector<Parameter*>& parameters);
  void share_initial_values();
  void cut();
  void show_values(const Tensor& block);
  void show_gradients(const Tensor& block);
  void start_gather_as(worker::ElementType type);
  void finish_gather_as(worker::ElementType type);
  void pack_gradients(void* to, bool flag);
  void widen_own_gradients();
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
  std::vector<Entry> entries_;
  std::vector<ParameterShard> shards_;
  std::string values_name_;  ///< "values of ..."
  std::string gradients_name_;
  std::int64_t part_count_ = 0;
  std::int64_t whole_count_ = 0;

  Tensor masters_;        ///< this rank's part of the values
  Tensor own_gradients_;  ///< and of the gradients; while they are reduced, in the type that they travel in
  Tensor raised_;         ///< the flag, as it is packed
  Tensor whole_values_;   ///< empty while they are not here, unless kept
  Tensor whole_gradients_;
  bool gathered_ = false;

  // What is on its way.
  Tensor outgoing_;  ///< this rank's part, as it travels
  Tensor incoming_;  ///< all parts
  std::shared_ptr<worker::Work> gathering_;
  Tensor to_reduce_;  ///< all parts; this rank's arrives in own_gradients_
  std::shared_ptr<worker::Work> scattering_;
  std::shared_ptr<worker::Work> replicating_;
};

}  // namespace muster::trainers
