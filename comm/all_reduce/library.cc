#include "comm/all_reduce/library.h"

#include <string>

#include "kernels/error.h"

namespace ringlet::comm {

namespace {

CollectiveEngine& engine_of(Transport& transport, const char* strategy) {
  if (runs_on(strategy, engine_name(transport))) return *transport.engine();
  throw ContractError("--sync " + std::string(strategy) + " needs " + engine_need(strategy));
}

}  // namespace

bool runs_on(std::string_view strategy, std::string_view engine) {
  return strategy == engine || (strategy == ReduceBroadcastAllReduce::kName && !engine.empty());
}

std::string_view engine_name(Transport& transport) {
  const CollectiveEngine* engine = transport.engine();
  return engine == nullptr ? "" : engine->engine_name();
}

const char* engine_need(std::string_view strategy) {
  if (strategy == NcclAllReduce::kName) return "--transport nccl";
  if (strategy == GlooAllReduce::kName) return "--transport gloo with one replica in each process";
  return "--transport nccl, or gloo with one replica in each process";
}

EngineAllReduce::EngineAllReduce(Transport& transport, const char* name)
    : AllReduce(transport), name_(name), engine_(engine_of(transport, name)) {}

ReduceBroadcastAllReduce::ReduceBroadcastAllReduce(Transport& transport)
    : AllReduce(transport), engine_(engine_of(transport, kName)) {}

void ReduceBroadcastAllReduce::run(Stream& stream, View data, ReduceOp op) {
  engine_.reduce_and_broadcast(stream, data, op);
}

}  // namespace ringlet::comm
