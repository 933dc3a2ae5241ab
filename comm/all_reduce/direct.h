// All-reduce between ranks that reach each other's memory: nothing is sent, and nothing copied that
// need not be.
//
//   one-shot   1. every rank copies its data to a window that the others see
//              2. the ranks meet
//              3. every rank adds up all windows by itself
//              One meeting, p n bytes read: for small data.
//
//   two-shot   1. the ranks meet
//              2. every rank takes the p-th part that is its own, adds up what all ranks have
//                 there, and writes the sum into the memory of each
//              3. the ranks meet again: all is written
//              Each rank reads and writes n bytes in all, whatever p is.
//
// Between processes this holds for memory of Transport::allocator(). Of other memory they see each
// other's windows only. One-shot copies anyway and goes through the windows there. Two-shot works
// through the data in pieces of a window's size, which stay in the cache. For each piece a rank
//   1. copies its data to the window, but for its own part, and meets the others
//   2. reduces its own part into its data and its window, and meets the others again
//   3. copies the others' parts from their windows
//
// A rank adds in the order of ranks, ((x0 + x1) + x2) + ..., narrow floats in f32 and rounded once.
#pragma once

#include <array>
#include <vector>

#include "comm/all_reduce/all_reduce.h"
#include "comm/peer_access.h"
#include "kernels/memory.h"

namespace ringlet::comm {

/// Both throw ContractError where the transport has no access to other ranks' memory, or for more
/// than kMaxReduced ranks.
class OneShotAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "one-shot";

  explicit OneShotAllReduce(Transport& transport);
  ~OneShotAllReduce() override;
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  /// The elements that it reads: (p-1) n.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;

 private:
  void run_on_piece(Stream& stream, const View& piece, ReduceOp op);
  View window_for(Stream& stream, const View& piece);

  PeerAccess& peers_;
  std::array<std::vector<Buffer>, 2> windows_;  // in turn; the last of each is in use
  std::size_t turn_ = 0;
};

class TwoShotAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "two-shot";

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
