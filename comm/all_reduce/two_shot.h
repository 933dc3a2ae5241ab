// Two-shot, between ranks that reach each other's memory:
//
//   1. the ranks meet
//   2. every rank takes the p-th part that is its own, adds up what all ranks have there, and
//      writes the sum into the memory of each
//   3. the ranks meet again: all is written
//
// Nothing is copied. Each rank reads n (p-1)/p bytes of the others and writes as many to them. It
// adds in the order of ranks, ((x0 + x1) + x2) + ..., narrow floats in f32 and rounded once.
//
// Between processes this holds for memory of Transport::allocator(). Of other memory they see each
// other's windows only. Two-shot then works through the data in pieces of a window's size, which
// stay in the cache. For each piece a rank
//   1. copies its data to the window, but for its own part, and meets the others
//   2. reduces its own part into its data and its window, and meets the others again
//   3. copies the others' parts from their windows
#pragma once

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/needs.h"

namespace ringlet::comm {

class TwoShotAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "two-shot";
  static constexpr Needs kNeeds = Needs::peer_access;
  /// Two meetings. A part of n / p is read from p-1 ranks and written to p-1 ranks.
  static PathCost path_cost(int ranks, double bytes);

  /// Throws ContractError as peers_of().
  explicit TwoShotAllReduce(Transport& transport);
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  /// Its part, read from and written to every other rank.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;

 private:
  void reduce_in_place(Stream& stream, const View& data, ReduceOp op);
  void run_through_windows(Stream& stream, const View& data, ReduceOp op);
  void run_on_pieces(Stream& stream, const View& data, ReduceOp op, std::int64_t begin,
                     std::int64_t longest);

  PeerAccess& peers_;
};

}  // namespace ringlet::comm
