// Recursive halving, then recursive doubling (Rabenseifner, 2004): the bytes of a ring with the
// steps of a tree.
//
//   halving,  log2 q steps   rank r and r XOR q/2 share what they work on: each sends the other's
//                            half and adds to its own. Then the same in halves of the ranks, until
//                            every rank has the sum of its q-th part
//   doubling, log2 q steps   the way back, which puts the parts together again
//
// q is the largest power of two up to p; the ranks beyond fold in (folding.h).
//
// For four ranks the sum is (x0 + x2) + (x1 + x3).
#pragma once

#include <array>

#include "comm/all_reduce/folding.h"
#include "comm/all_reduce/needs.h"

namespace ringlet::comm {

class HalvingDoublingAllReduce final : public FoldingAllReduce {
 public:
  static constexpr const char* kName = "halving-doubling";
  static constexpr Needs kNeeds = Needs::nothing;
  /// On each of two ways a half, a quarter, ... to a q-th.
  static PathCost path_cost(int ranks, double bytes);
  /// The long halves go between machines, and all ranks of a machine send theirs over its link. So
  /// it is where a machine has a power of two of ranks; else it is an estimate.
  static LevelCosts level_costs(int machines, int each, double bytes);

  explicit HalvingDoublingAllReduce(Transport& transport);
  const char* name() const override { return kName; }

 protected:
  void run_on_power(Stream& stream, const View& data, ReduceOp op) override;
  /// About 2 n (q-1)/q
  std::int64_t elements_sent_on_power(std::int64_t count) const override;

 private:
  /// A range of elements, and the part of it that goes to the partner in a step of halving.
  struct Halves {
    std::int64_t begin, middle, end;
    bool keeps_lower;
    View kept_of(const View& data) const;
    View sent_of(const View& data) const;
  };
  static constexpr int kMaxSteps = 32;
  using Steps = std::array<Halves, kMaxSteps>;

  int partner(int step) const { return rank() ^ (power() >> (step + 1)); }
  Steps halve(std::int64_t count) const;

  int steps_;  // log2 q
};

}  // namespace ringlet::comm
