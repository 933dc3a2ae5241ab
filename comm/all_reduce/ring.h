// The ring: the data are cut into p chunks, and in every step each rank passes one chunk on to the
// next rank.
//
//   reduce-scatter, p-1 steps   chunk c travels once around and collects every rank's part; in the
//                               end rank r has the whole sum of chunk r + 1
//   all-gather,     p-1 steps   the finished chunks travel around once more
//
// Each rank sends 2 (p-1)/p of its bytes whatever p is, which is the least possible (Patarasuk and
// Yuan, JPDC 69(2), 2009). Each chunk goes as one message. Shorter messages were measured: each of
// them costs one more wait for the neighbour (docs/all-reduce-measured.md).
#pragma once

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/needs.h"

namespace ringlet::comm {

class RingAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "ring";
  static constexpr Needs kNeeds = Needs::nothing;
  /// Every step carries a p-th, and every rank sends all the time.
  static PathCost path_cost(int ranks, double bytes);

  using AllReduce::AllReduce;
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  /// All chunks but r + 1, then all but r + 2.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;
};

/// The first half by itself: on rank r, chunk `own` = op of that chunk over all ranks, where `own`
/// is r plus the same number on every rank, modulo p. The other chunks then hold partial sums.
/// Chunks are those of parts.h.
void ring_reduce_scatter(Transport& transport, Stream& stream, const View& data, ReduceOp op,
                         int own);

}  // namespace ringlet::comm
