// Two-shot, between ranks that reach each other's memory. No messages: each rank adds up one part
// straight from all ranks' memory, and writes the result there.
//
//   before   every rank has numbers of its own in `data`
//   after    every rank has op of all ranks' numbers there, and nobody writes to it any more
//
// Three calls are enough. The first shows `data` and waits until all ranks do; the second makes
// elements [begin, end) of all ranks' data op of all ranks' elements; the last waits for all again.
//
//   peers_.open(stream, data);
//   peers_.reduce_for_all(stream, op, begin, end);
//   peers_.close(stream);
#include "comm/all_reduce/two_shot.h"

#include "comm/all_reduce/parts.h"
#include "learn.h"

namespace ringlet::comm {

void TwoShotAllReduce::run(Stream& stream, View data, ReduceOp op) {
  const std::int64_t begin = part_begin(data.count(), size(), rank());
  const std::int64_t end = part_begin(data.count(), size(), rank() + 1);
  learn::not_written_yet(stream, data, op, begin, end);
}

}  // namespace ringlet::comm
