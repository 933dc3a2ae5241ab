#include "comm/library_all_reduce.h"

#include <string>

#include "kernels/error.h"

namespace ringlet::comm {

namespace {

CollectiveEngine& engine_of(Transport& transport, const char* strategy) {
  if (CollectiveEngine* engine = transport.engine()) return *engine;
  throw ContractError("--sync " + std::string(strategy) + " needs --transport nccl");
}

}  // namespace

NcclAllReduce::NcclAllReduce(Transport& transport)
    : AllReduce(transport), engine_(engine_of(transport, kName)) {}

void NcclAllReduce::run(Stream& stream, View data, ReduceOp op) {
  engine_.all_reduce(stream, data, op);
}

ReduceBroadcastAllReduce::ReduceBroadcastAllReduce(Transport& transport)
    : AllReduce(transport), engine_(engine_of(transport, kName)) {}

void ReduceBroadcastAllReduce::run(Stream& stream, View data, ReduceOp op) {
  engine_.reduce_and_broadcast(stream, data, op);
}

}  // namespace ringlet::comm
