// Recursive doubling: in step k every rank r exchanges all it has with rank r XOR 2^k and adds.
// After log2 p steps everybody has the sum, with the fewest messages one after the other.
//
// All ranks add in the same binary tree over the rank index, for four ranks (x0 + x1) + (x2 + x3):
// partners add the same two numbers, and a + b = b + a. Exact mode relies on this: with p a power
// of two, the tree of p ranks continues the tree that each rank builds over its own logical shards.
//
// For other p, the ranks beyond a power of two fold in (folding.h).
// Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH",
// 2005.
#pragma once

#include "comm/all_reduce/folding.h"
#include "comm/all_reduce/needs.h"

namespace ringlet::comm {

class DoublingAllReduce final : public FoldingAllReduce {
 public:
  static constexpr const char* kName = "doubling";
  static constexpr Needs kNeeds = Needs::nothing;
  static constexpr bool kAddsAsShardTree = true;
  /// Whole messages on all levels.
  static PathCost path_cost(int ranks, double bytes);
  /// The first levels stay inside; on the others all ranks of a machine send over its link. So it
  /// is where a machine has a power of two of ranks; else it is an estimate.
  static LevelCosts level_costs(int machines, int each, double bytes);

  using FoldingAllReduce::FoldingAllReduce;
  const char* name() const override { return kName; }

 protected:
  void run_on_power(Stream& stream, const View& data, ReduceOp op) override;
  /// n log2 q
  std::int64_t elements_sent_on_power(std::int64_t count) const override;
};

}  // namespace ringlet::comm
