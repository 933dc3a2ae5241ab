// FoldingAllReduce: for strategies that work on a power of two of ranks.
//
// Of p ranks, q = the largest power of two up to p take part. Rank q + i first gives its data to
// rank i (it folds in), sits out, and gets the sum in the end.
#pragma once

#include "comm/all_reduce/all_reduce.h"

namespace ringlet::comm {

class FoldingAllReduce : public AllReduce {
 public:
  explicit FoldingAllReduce(Transport& transport);
  void run(Stream& stream, View data, ReduceOp op) final;
  /// n more than on the power of two for a rank that folds in or sends a sum back.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const final;

 protected:
  /// q
  int power() const { return power_; }
  /// run() among ranks 0 ... q - 1, finish() included.
  virtual void run_on_power(Stream& stream, const View& data, ReduceOp op) = 0;
  /// elements_sent() among them.
  virtual std::int64_t elements_sent_on_power(std::int64_t count) const = 0;

  static int power_of(int ranks);
  /// The cost for `ranks` where that of power_of(ranks) is `on_power`.
  static PathCost with_folds(int ranks, double bytes, const PathCost& on_power);

 private:
  bool folds_in() const { return rank() >= power_; }
  bool has_fold() const { return rank() + power_ < size(); }

  int power_;
};

}  // namespace ringlet::comm
