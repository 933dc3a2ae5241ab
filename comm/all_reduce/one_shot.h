// One-shot, for small data between ranks that reach each other's memory:
//
//   1. every rank copies its data to a window that the others see
//   2. the ranks meet
//   3. every rank adds up all windows by itself, in the order of ranks, ((x0 + x1) + x2) + ...;
//      narrow floats in f32 and rounded once
//
// One meeting, and nothing is sent. Each rank reads (p-1) n bytes of the others, and its own n.
// Data that are longer than a window go through it in pieces. Short data in the memory of the host
// have a window of their own, and the first two steps are one call (PeerAccess::share()).
#pragma once

#include <array>
#include <vector>

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/needs.h"
#include "kernels/memory.h"

namespace ringlet::comm {

class OneShotAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "one-shot";
  static constexpr Needs kNeeds = Needs::peer_access;
  /// One meeting, and n bytes of each rank, its own too. The copy to the window is left out, as
  /// that to a buffer is in an exchange: counted here alone, doubling would seem faster at every
  /// size.
  static PathCost path_cost(int ranks, double bytes);

  /// Throws ContractError as peers_of().
  explicit OneShotAllReduce(Transport& transport);
  ~OneShotAllReduce() override;
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  bool run_short(Stream& stream, const Flat& data, ReduceOp op) override;
  /// The elements that it reads: (p-1) n.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;

 private:
  void run_on_piece(Stream& stream, const View& piece, ReduceOp op);
  View window_for(Stream& stream, const View& piece);

  PeerAccess& peers_;
  std::array<std::vector<Buffer>, 2> windows_;  // in turn; the last of each is in use
  std::size_t turn_ = 0;
};

}  // namespace ringlet::comm
