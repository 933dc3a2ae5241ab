// Recursive doubling: in step k every rank r exchanges all it has with rank r XOR 2^k and adds.
// After log2 p steps everybody has the sum, with the fewest messages one after the other.
//
// All ranks add in the same binary tree over the rank index, for four ranks (x0 + x1) + (x2 + x3):
// partners add the same two numbers, and a + b = b + a. Exact mode relies on this: with p a power
// of two, the tree of p ranks continues the tree that each rank builds over its own logical shards.
//
// For other p, with q the largest power of two below p: rank q + i first gives its data to rank i
// (fold-in), sits out, and gets the sum in the end.
// Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH",
// 2005.
#pragma once

#include "comm/all_reduce/all_reduce.h"

namespace ringlet::comm {

class DoublingAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "doubling";

  explicit DoublingAllReduce(Transport& transport);
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  /// n log2 q, and n more for a rank that folds in or sends a sum back.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;

 private:
  bool folds_in() const { return rank() >= power_; }
  bool has_fold() const { return rank() + power_ < size(); }

  int power_;  // q
};

}  // namespace ringlet::comm
