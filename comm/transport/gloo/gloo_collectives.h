// Gloo's own collectives on a mesh of processes with one rank each. Included by files that are
// compiled with Gloo only.
//
// Gloo works in the caller's memory, but only until these return or throw: its handles to that
// memory end with the call, and their destructors wait for what is under way. A call throws when a
// wait takes longer than `timeout`, which ends all connections, and after GlooContext::break_off().
//
// Every process passes as many elements, at least one, and there are at least two processes.
#pragma once

#include <memory>

#include "comm/transport/between/message_engine.h"
#include "comm/transport/gloo/gloo_context.h"

namespace ringlet::comm {

/// data = op of data over all processes: gloo::allreduce, a ring in segments.
void gloo_all_reduce(const std::shared_ptr<GlooContext>& context, const EngineCall& call);
/// The same by gloo::reduce to process 0, then gloo::broadcast.
void gloo_reduce_and_broadcast(const std::shared_ptr<GlooContext>& context, const EngineCall& call);

}  // namespace ringlet::comm
