// Gloo's own collectives on a mesh of processes with one rank each. Included by files that are
// compiled with Gloo only.
//
// Gloo works in the caller's memory, but only until these return or throw: its handles to that
// memory end with the call, and their destructors wait for what is under way. A call throws when a
// wait takes longer than `timeout`, which ends all connections, and after GlooContext::break_off().
//
// Every process passes as many elements, at least one, and there are at least two processes.
#pragma once

#include <chrono>
#include <memory>

#include "comm/transport/gloo/gloo_context.h"
#include "kernels/reduce_op.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

struct GlooCall {
  std::shared_ptr<GlooContext> context;
  Stream& stream;  ///< of the host; reduces, on the calling thread
  View data;
  std::chrono::milliseconds timeout;
};

/// data = op of data over all processes: gloo::allreduce, a ring in segments.
void gloo_all_reduce(const GlooCall& call, ReduceOp op);
/// The same by gloo::reduce to process 0, then gloo::broadcast.
void gloo_reduce_and_broadcast(const GlooCall& call, ReduceOp op);

}  // namespace ringlet::comm
