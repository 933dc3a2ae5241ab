// The collectives that need one algorithm only, on Transport alone. Called on the thread that runs
// `stream`, stream-ordered like Transport::exchange. p is the number of ranks.
#pragma once

#include "comm/core/transport.h"

namespace ringlet::comm {

// Between at most kMaxReduced processors that reach each other's memory, where a rank shows 4 KiB
// or less, each of these is one meeting over the ranks' boards (PeerAccess::share()), but for a
// reduce_scatter() that a ring would round otherwise.
//
// More goes through the ranks' memory, between processors, where a transport gives access to that
// of all ranks' data (peer_access.h): from 16 KiB on, an all_to_all between processes alone. Two
// meetings; all ranks must call it, and none returns before all have come.

/// data = rank `root`'s data, the same length on every rank. broadcast_by_tree(), or each rank
/// copies a part of the root's memory to all others'.
void broadcast(Transport& transport, Stream& stream, int root, View data);
/// Binomial tree: the ranks that have the data double with each of the ceil(log2 p) steps.
void broadcast_by_tree(Transport& transport, Stream& stream, int root, View data);

/// Finishes `data`, in which the values of `ranks` ranks are combined: for mean, divides by
/// `ranks`.
void finish_reduction(Stream& stream, View data, ReduceOp op, int ranks);

/// data = op of data over all ranks, on rank `root`; the same length on every rank. On the others
/// data is then unspecified. reduce_by_tree(), which rounds narrow floats at each step; or over
/// boards, or each rank a part in the root's memory: then in the order of ranks from `root` on, and
/// narrow floats are rounded once. So the last bit may depend on the length and on the memory.
void reduce(Transport& transport, Stream& stream, int root, View data, ReduceOp op);
/// Binomial tree: broadcast backwards. The other ranks' data then hold partial sums.
void reduce_by_tree(Transport& transport, Stream& stream, int root, View data, ReduceOp op);

/// Part r of data = op of part r over all ranks, on rank r (parts.h). The rest of data is then
/// unspecified. The first half of a ring, p-1 steps; or each rank adds its part from the others'
/// memory in that order. Narrow floats of more than two ranks stay with the ring, which rounds them
/// at each step.
void reduce_scatter(Transport& transport, Stream& stream, View data, ReduceOp op);

/// all = mine of rank 0, of rank 1, ... Rank-1, the same type; `all` has p times `mine`'s length.
/// `mine` may be its own part of `all`.
/// In step k every rank sends to the rank k above it, p-1 steps; or reads from the others' memory.
void all_gather(Transport& transport, Stream& stream, ConstView mine, View all);

/// Part r of `in` = part `rank` of rank r's `out`. Both are rank-1, of the same type and length,
/// which is a multiple of p; they must not overlap. As all_gather: p-1 steps, or each rank reads.
void all_to_all(Transport& transport, Stream& stream, ConstView out, View in);

/// Returns when every rank has come here. Dissemination (Hensgen, Finkel and Manber, 1988): after
/// step k a rank has heard, at second hand, of the 2^(k+1) - 1 ranks below it; ceil(log2 p) steps
/// of empty messages.
void barrier(Transport& transport, Stream& stream);

}  // namespace ringlet::comm
