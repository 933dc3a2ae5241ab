// The binomial tree, once up and once down: in step k of the way up, every rank whose number is an
// odd multiple of 2^k passes what it has on to the rank 2^k below it, which adds; after log2 p
// steps rank 0 has the sum, which goes back the same way. Few messages one after the other, each of
// them whole: for small data, where latency is all.
//
// The sum is that of doubling (doubling.h) wherever p is a power of two.
#pragma once

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/needs.h"

namespace ringlet::comm {

class TreeAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "tree";
  static constexpr Needs kNeeds = Needs::nothing;
  /// Whole messages up and down all levels.
  static PathCost path_cost(int ranks, double bytes);
  /// Where a machine has a power of two of ranks, the first levels stay inside, and on the others
  /// one of its ranks sends. Else all levels count as between machines, which is too much.
  static LevelCosts level_costs(int machines, int each, double bytes);

  using AllReduce::AllReduce;
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  /// n to the parent, if any, and n to each child.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;
};

}  // namespace ringlet::comm
