// What a ring costs. It is asked before it runs: by `auto`, which picks a strategy, and by you.
//
//   path_cost        for `bytes` on each of `ranks` ranks, two at least: steps one after the other,
//                    the bytes that pass on the longest path, and how many of them are added.
//                    Parts count as equal: real numbers, no rounding
//   elements_sent    how many of `count` elements this rank sends in one run(). Parts may differ in
//                    length, and so may what ranks send: part_begin() says where a part begins.
//                    rank() is this rank's number and size() that of ranks, which may be 1
//
// run() is not asked again. Put that of your ring here, if you like: then yours is played. Without
// it the product's is, in which rank r has part r + 1 complete first.
#include "comm/all_reduce/ring.h"

#include "comm/all_reduce/parts.h"
#include "learn.h"

namespace ringlet::comm {

PathCost RingAllReduce::path_cost(int ranks, double bytes) {
  learn::not_written_yet(ranks, bytes);
  // return {steps, bytes, bytes added};
}

std::optional<std::int64_t> RingAllReduce::elements_sent(std::int64_t count) const {
  learn::not_written_yet(count);
}

}  // namespace ringlet::comm
