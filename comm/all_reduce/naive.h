// The star: every rank sends all its data to rank 0, which adds in the order of ranks and sends the
// sum back to each. 2 (p-1) messages of n bytes, all of them through rank 0, so it gets slower with
// every rank. The textbook's `allreduce`, and what the other strategies are compared with.
#pragma once

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/needs.h"

namespace ringlet::comm {

class NaiveAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "naive";
  static constexpr Needs kNeeds = Needs::nothing;
  /// All of it to rank 0 from one rank after the other, and back.
  static PathCost path_cost(int ranks, double bytes);
  /// Rank 0 takes from those on its machine first.
  static LevelCosts level_costs(int machines, int each, double bytes);

  using AllReduce::AllReduce;
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  /// Rank 0: (p-1) n, the others n.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;
};

}  // namespace ringlet::comm
