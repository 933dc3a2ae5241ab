// Two levels, for ranks on several machines, which may have different numbers of them: inside a
// machine messages are quick, and all ranks of a machine share one link to the others.
//
//   before   every rank has numbers of its own in `data`
//   after    every rank has op of all ranks' numbers there, the same bytes
//
// On 512 machines with 8 ranks each it has to be quicker than the flat ring, whose steps all wait
// for the slowest link. What is given: who is where.
//
// Two calls are enough. An exchange joins what comes with `in`, or without its last argument
// copies it there. finish() divides where op is a mean: once for each part.
//
//   transport().exchange(stream, to, out, from, in, combine_of(op));
//   finish(stream, part, op);
#include "comm/all_reduce/two_level.h"

#include <algorithm>
#include <vector>

#include "comm/all_reduce/parts.h"
#include "learn.h"

namespace ringlet::comm {

namespace {

/// The ranks of this rank's machine, in their order.
std::vector<int> neighbours(const Transport& transport) {
  std::vector<int> ranks;
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (transport.machine_of(rank) == transport.machine_of(transport.rank())) ranks.push_back(rank);
  }
  return ranks;
}

/// The ranks that have this rank's place on their machine, in their order.
std::vector<int> counterparts(const Transport& transport) {
  std::vector<int> ranks, seen(static_cast<std::size_t>(transport.world().machines));
  for (int rank = 0; rank < transport.size(); ++rank) {
    const int place = seen[static_cast<std::size_t>(transport.machine_of(rank))]++;
    if (place == transport.world().machine_rank) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

void TwoLevelAllReduce::run(Stream& stream, View data, ReduceOp op) {
  const std::vector<int> near = neighbours(transport());   // inside the machine
  const std::vector<int> far = counterparts(transport());  // one on each machine
  learn::not_written_yet(stream, data, op, near, far);
}

}  // namespace ringlet::comm
