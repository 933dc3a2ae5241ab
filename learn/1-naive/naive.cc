// The star. Each rank runs this function, and is one of them: rank() says which, size() how many.
//
//   before   every rank has numbers of its own in `data`
//   after    every rank has op of all ranks' numbers there, the same bytes
//
// Three calls are enough. A receive joins what comes with `data`, or without its last argument
// copies it there. finish() divides where op is a mean: once, where all is together.
//
//   transport().send(stream, to, data);
//   transport().receive(stream, from, data, combine_of(op));
//   finish(stream, data, op);
#include "comm/all_reduce/naive.h"

#include "learn.h"

namespace ringlet::comm {

void NaiveAllReduce::run(Stream& stream, View data, ReduceOp op) {
  learn::not_written_yet(stream, data, op);
}

}  // namespace ringlet::comm
