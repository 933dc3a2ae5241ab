// The ring. Each rank sends to the next one and receives from the one before, at the same time.
//
//   before           every rank has numbers of its own in `data`
//   reduce-scatter   p - 1 steps; then each rank has one whole part: op of all ranks' numbers
//   all-gather       p - 1 steps; then every rank has all whole parts
//
// Two calls are enough. An exchange joins what comes with `in`, or without its last argument
// copies it there. finish() divides where op is a mean: once for each part.
//
//   transport().exchange(stream, to, out, from, in, combine_of(op));
//   finish(stream, part, op);
#include "comm/all_reduce/ring.h"

#include "comm/all_reduce/parts.h"
#include "learn.h"

namespace ringlet::comm {

namespace {

/// Part `index` of `data`, modulo the number of parts; it may be negative.
View part_of(const View& data, int parts, int index) {
  const int part = (index % parts + parts) % parts;
  return data.slice(part_begin(data.count(), parts, part),
                    part_begin(data.count(), parts, part + 1));
}

}  // namespace

void RingAllReduce::run(Stream& stream, View data, ReduceOp op) {
  const int p = size();
  const int next = (rank() + 1) % p, previous = (rank() + p - 1) % p;
  learn::not_written_yet(stream, part_of(data, p, 0), op, next, previous);
}

}  // namespace ringlet::comm
