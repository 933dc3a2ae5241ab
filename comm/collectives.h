// The collectives for which one way is enough, on Transport alone. Called on the thread that runs
// `stream`, stream-ordered like Transport::exchange. p ranks.
#pragma once

#include "comm/transport.h"

namespace ringlet::comm {

/// data = rank `root`'s data, the same length on every rank. Binomial tree: the ranks that have the
/// data double with each of the ceil(log2 p) steps.
void broadcast(Transport& transport, Stream& stream, int root, View data);

/// all = mine of rank 0, of rank 1, ... Rank-1, the same type; `all` has p times `mine`'s length.
/// `mine` may be its own place in `all`.
/// In step k every rank sends to the rank k above it: p-1 steps.
void all_gather(Transport& transport, Stream& stream, ConstView mine, View all);

/// Nobody gets through before everybody has come. Dissemination: after step k a rank has heard, at
/// second hand, of the 2^(k+1) - 1 ranks below it; ceil(log2 p) steps of empty messages (Hensgen,
/// Finkel and Manber, 1988).
void barrier(Transport& transport, Stream& stream);

}  // namespace ringlet::comm
