#include "comm/all_reduce/library.h"

#include "comm/all_reduce/ring.h"

namespace ringlet::comm {

EngineAllReduce::EngineAllReduce(Transport& transport, const char* name, Needs needs)
    : AllReduce(transport), name_(name), engine_(engine_of(transport, name, needs)) {}

PathCost EngineAllReduce::path_cost(int ranks, double bytes) {
  return RingAllReduce::path_cost(ranks, bytes);
}

ReduceBroadcastAllReduce::ReduceBroadcastAllReduce(Transport& transport)
    : AllReduce(transport), engine_(engine_of(transport, kName, kNeeds)) {}

PathCost ReduceBroadcastAllReduce::path_cost(int ranks, double bytes) {
  return {2.0 * (ranks - 1), 2 * bytes, bytes};
}

void ReduceBroadcastAllReduce::run(Stream& stream, View data, ReduceOp op) {
  engine_.reduce_and_broadcast(stream, data, op);
}

}  // namespace ringlet::comm
