// Two levels, for ranks on several machines: inside a machine, between machines, inside again.
//
//   1. The data are cut into L parts, L being the ranks of a machine. Rank l of each machine
//      gathers and adds part l from all ranks of that machine.
//   2. Rank l of each machine reduces part l with rank l of all others, by doubling, by
//      halving-doubling or by a ring, whichever the cost model has as the fastest.
//   3. Rank l gives part l to all ranks of its machine.
//
//   machine 0   rank 0 | a . |  1.  | A . |  2.  | S . |  3.  | S T |
//               rank 1 | . b |      | . B |      | . T |      | S T |
//
// On m machines each link carries 2 n (m-1)/m bytes, however many ranks a machine has. A flat ring
// over p ranks carries 2 n (p-1)/p there, in 2 (p-1) steps that all wait for the slowest link.
//
// Where machines have different numbers of ranks, L is the least. Ranks beyond that give all they
// have in step 1, and get all in step 3. On one machine there is no step 2.
#pragma once

#include <memory>
#include <vector>

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/needs.h"
#include "comm/core/part_transport.h"

namespace ringlet::comm {

class TwoLevelAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "two-level";
  static constexpr Needs kNeeds = Needs::nothing;
  static constexpr bool kNarrowsBetween = true;
  /// On one machine, the bytes and steps of a ring.
  static PathCost path_cost(int ranks, double bytes);
  /// Between machines that of whichever way run() takes there over such a link.
  static LevelCosts level_costs(int machines, int each, double bytes, const CostModel& link);

  explicit TwoLevelAllReduce(Transport& transport);
  ~TwoLevelAllReduce() override;
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  void run_narrow(Stream& stream, const View& data, const View& wire) override;
  /// Of f32: another type may go between the machines by another strategy.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;

 private:
  bool has_part() const { return local_rank_ < parts_; }
  View level_part(const View& data, int part) const;
  template <class Between>
  void run_levels(Stream& stream, const View& data, ReduceOp op, Between between);
  void gather_inside(Stream& stream, const View& data, ReduceOp op);
  void spread_inside(Stream& stream, const View& data);

  std::vector<int> near_;  // ranks of this machine, in their order
  int local_rank_ = 0;     // of this rank among them
  int parts_ = 1;          // L
  // Ranks with the same part on all machines; null where there are no others.
  std::unique_ptr<PartTransport> far_;
  std::unique_ptr<AllReduce> between_;
};

}  // namespace ringlet::comm
