// Recursive halving, then recursive doubling (Rabenseifner, 2004): the bytes of a ring with the
// steps of a tree.
//
//   halving,  log2 q steps   rank r and r XOR q/2 share what they work on: each sends the other's
//                            half and adds to its own. Then the same in halves of the ranks, until
//                            every rank has the sum of its q-th part
//   doubling, log2 q steps   the way back, which puts the parts together again
//
// q is the largest power of two up to p. The p - q ranks beyond give their data to a rank below
// first, sit out and get the sum in the end, as in doubling_all_reduce.h.
//
// For four ranks the sum is (x0 + x2) + (x1 + x3).
#pragma once

#include <array>

#include "comm/all_reduce/all_reduce.h"

namespace ringlet::comm {

class HalvingDoublingAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "halving-doubling";

  explicit HalvingDoublingAllReduce(Transport& transport);
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  /// About 2 n (q-1)/q, and n more for a rank that folds in or sends a sum back.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;

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

  bool folds_in() const { return rank() >= power_; }
  bool has_fold() const { return rank() + power_ < size(); }
  int partner(int step) const { return rank() ^ (power_ >> (step + 1)); }
  Steps halve(std::int64_t count) const;

  int power_;  // q
  int steps_;  // log2 q
};

}  // namespace ringlet::comm
