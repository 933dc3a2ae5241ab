// How a collective runs on a rank, how its result is checked, and what it costs.
#pragma once

#include <cstdint>
#include <string_view>

#include "bench/all_reduce/collective.h"
#include "bench/all_reduce/test_pattern.h"
#include "comm/all_reduce/cost_model.h"
#include "comm/communicator.h"
#include "kernels/reduce_op.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet::bench {

/// What all ranks hand to a collective alike.
struct CollectiveCall {
  const Collective& collective;
  ReduceOp op = ReduceOp::sum;  ///< of one that reduces
  int root = 0;                 ///< of one that has it
  std::string_view name{};      ///< of the call, for messages and traces
};

/// Runs it: stream-ordered, and throws, as Communicator's own. `result`: rank-1, as long as the
/// size. `input`: of all-gather the rank's part, which may be its part of the result; of all-to-all
/// and send-recv the whole of it, apart from the result; others find their input in the result.
void run(const CollectiveCall& call, comm::Communicator& ranks, Stream& stream,
         const ConstView& input, const View& result);

/// The elements of `count` that a rank has of its own afterwards, from `begin` up to `end`: its
/// part of reduce-scatter's result, nothing of a reduction that another rank is the root of, else
/// all.
struct OwnedElements {
  std::int64_t begin = 0, end = 0;
};
OwnedElements owned_after(const CollectiveCall& call, int rank, int ranks, std::int64_t count);

/// The pattern of a rank's input: whose reductions are exact where the collective reduces.
TestPattern pattern_for(const Collective& collective, DType type, ReduceOp op, int rank, int ranks);

/// Elements that are not the exact ones, of those that the rank has. `result`: the whole of it, on
/// the host.
std::int64_t count_wrong(const CollectiveCall& call, const TestPattern& pattern, int rank,
                         int ranks, std::int64_t iteration, ConstView result);

/// Steps and bytes on the longest path, of `bytes` as in collective.h: of what Ringlet does over
/// messages (comm/all_reduce/collectives.h). Of all-reduce, which has many ways, nothing that would
/// tell them apart: one message.
comm::PathCost path_cost_of(CollectiveId id, int ranks, double bytes);

}  // namespace ringlet::bench
